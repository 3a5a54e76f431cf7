// A table with a caption and what it says where it is empty; text from outside keeps its own direction.

import type { ReactNode } from "react";

interface Props {
  caption: string;
  columns: string[];
  rows: { key: string; cells: ReactNode[] }[];
  empty: string;
}

const FIGURE = /^(–|[-−+]?[\d,.]+( ?(%|ms|W|°C))?)$/;

/** Figures stand to the right, so that their digits line up. */
const isFigure = (cell: ReactNode) => typeof cell === "number" || (typeof cell === "string" && FIGURE.test(cell));

export function Rows({ caption, columns, rows, empty }: Props) {
  if (rows.length === 0) return <p className="quiet">{empty}</p>;
  return (
    <div className="wide-table" tabIndex={0} role="group" aria-label={caption}>
      <table>
        <caption className="hidden">{caption}</caption>
        <thead>
          <tr>
            {columns.map((one, k) => (
              <th key={one} scope="col" className={isFigure(rows[0]?.cells[k]) ? "figure" : undefined}>
                {one === "" ? <span className="hidden">Act</span> : one}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.key}>
              {row.cells.map((cell, k) =>
                k === 0 ? (
                  <th key={k} scope="row">
                    {cell}
                  </th>
                ) : (
                  <td key={k} className={isFigure(cell) ? "figure" : undefined}>
                    {cell}
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
