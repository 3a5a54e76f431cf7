// A band between two prices at each time, as a series of lightweight-charts.

import {
  customSeriesDefaultOptions,
  type CustomData,
  type CustomSeriesOptions,
  type CustomSeriesPricePlotValues,
  type CustomSeriesWhitespaceData,
  type ICustomSeriesPaneRenderer,
  type ICustomSeriesPaneView,
  type PaneRendererCustomData,
  type PriceToCoordinateConverter,
  type Time,
} from "lightweight-charts";

export interface Band extends CustomData<Time> {
  low: number;
  high: number;
}

export interface BandOptions extends CustomSeriesOptions {
  fill: string;
}

type Target = Parameters<ICustomSeriesPaneRenderer["draw"]>[0];

class BandRenderer implements ICustomSeriesPaneRenderer {
  data: PaneRendererCustomData<Time, Band> | null = null;
  fill = "";

  draw(target: Target, toY: PriceToCoordinateConverter): void {
    const { data, fill } = this;
    if (data === null || data.visibleRange === null) return;
    const { from, to } = data.visibleRange; // bars outside of it have no place
    const bars = data.bars.slice(from, to);
    if (bars.length < 2) return;
    target.useMediaCoordinateSpace(({ context }) => {
      context.beginPath();
      bars.forEach((bar, k) => context[k === 0 ? "moveTo" : "lineTo"](bar.x, toY(bar.originalData.high) ?? 0));
      for (const bar of [...bars].reverse()) context.lineTo(bar.x, toY(bar.originalData.low) ?? 0);
      context.closePath();
      context.fillStyle = fill;
      context.fill();
    });
  }
}

export class BandSeries implements ICustomSeriesPaneView<Time, Band, BandOptions> {
  private readonly drawn = new BandRenderer();

  renderer(): ICustomSeriesPaneRenderer {
    return this.drawn;
  }

  update(data: PaneRendererCustomData<Time, Band>, options: BandOptions): void {
    this.drawn.data = data;
    this.drawn.fill = options.fill;
  }

  priceValueBuilder(row: Band): CustomSeriesPricePlotValues {
    return [row.low, row.high, (row.low + row.high) / 2];
  }

  isWhitespace(row: Band | CustomSeriesWhitespaceData<Time>): row is CustomSeriesWhitespaceData<Time> {
    return (row as Partial<Band>).low === undefined;
  }

  defaultOptions(): BandOptions {
    return { ...customSeriesDefaultOptions, fill: "#0000" };
  }
}
