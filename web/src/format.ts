// Numbers and times as people read them. Times are UTC, as in the record.

export function price(value: number): string {
  const size = value === 0 ? 0 : Math.floor(Math.log10(Math.abs(value)));
  const decimals = Math.min(Math.max(2, 4 - size), 8);
  return value.toLocaleString("en-US", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });
}

export function percent(share: number, decimals = 1): string {
  return `${(100 * share).toFixed(decimals)}%`;
}

export function signedPercent(share: number): string {
  return `${share >= 0 ? "+" : "−"}${percent(Math.abs(share), 2)}`;
}

export function instant(text: string): string {
  return `${text.slice(0, 10)} ${text.slice(11, 16)} UTC`;
}

export function counted(num: number, one: string, several = `${one}s`): string {
  return `${num.toLocaleString("en-US")} ${num === 1 ? one : several}`;
}

/** With three significant digits, and no decimals from 1,000 on. */
export function figure(value: number): string {
  return value.toLocaleString("en-US", { maximumSignificantDigits: Math.abs(value) >= 1_000 ? Math.ceil(Math.log10(Math.abs(value))) : 3 });
}

export function money(value: number): string {
  return value.toLocaleString("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
}

/** A dash for what is not known. */
export function known<T>(value: T | null, words: (value: T) => string): string {
  return value === null ? "–" : words(value);
}

/** Characters that steer how text is written, or cannot be seen, as their numbers. Lines stay lines. */
export function visible(text: string): string {
  return text.replace(/[\p{Cf}\p{Cc}]/gu, (one) => (one === "\n" ? one : `\\u{${(one.codePointAt(0) ?? 0).toString(16)}}`));
}
