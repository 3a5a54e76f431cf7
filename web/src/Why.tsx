// Why a forecast is as it is: regime, rung, experts' weights, the rationale.

import { memo } from "react";
import type { Forecast } from "./api";
import { instant, percent, price } from "./format";
import { NewsEffect } from "./NewsEffect";

const REGIMES: { [name: string]: string } = { calm: "calm", normal: "normal", turbulent: "turbulent", shock: "shock" };

export const Why = memo(function Why({ forecast }: { forecast: Forecast }) {
  const weights = Object.entries(forecast.weights).sort((one, other) => other[1] - one[1]);
  return (
    <section aria-labelledby="why">
      <h2 id="why">Why</h2>
      <p className="facts">
        <span className={`regime ${REGIMES[forecast.regime] ?? ""}`}>{forecast.regime}</span>
        <span>{forecast.rung.replace("_", " ")}</span>
        <span>{instant(forecast.as_of)}</span>
      </p>
      <p>{forecast.rationale}</p>
      <table>
        <caption>90% bands</caption>
        <tbody>
          {forecast.horizons.map((one) => (
            <tr key={one.bars}>
              <th scope="row">{one.bars === 1 ? "next bar" : `${one.bars} bars`}</th>
              <td>{price(one.low)}</td>
              <td>{price(one.high)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <h3>Weights of the experts</h3>
      <dl className="weights">
        {weights.map(([name, share]) => (
          <div key={name}>
            <dt>{name.replaceAll("_", " ")}</dt>
            <dd>
              <meter min={0} max={1} value={share} aria-label={name} /> <span>{percent(share, 0)}</span>
            </dd>
          </div>
        ))}
      </dl>
      <NewsEffect index={forecast.index} />
    </section>
  );
});
