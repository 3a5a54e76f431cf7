// Axes of the report's charts: times on an axis that counts bars, prices on a scale of their own. page.js calls them.
"use strict";
const axis = (() => {
  const SECOND = 1e3, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, DAY = 24 * HOUR;
  const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
  const LOG_FROM = 4; // highest over lowest price from which a scale is logarithmic
  const two = (number) => String(number).padStart(2, "0");

  const months = (count) => ({
    start: (ms) => { const at = new Date(ms); return Date.UTC(at.getUTCFullYear(), Math.floor(at.getUTCMonth() / count) * count, 1); },
    next: (ms) => { const at = new Date(ms); return Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + count, 1); },
    says: (at, before) => at.getUTCFullYear() === before?.getUTCFullYear()
      ? MONTHS[at.getUTCMonth()] : `${MONTHS[at.getUTCMonth()]} ${at.getUTCFullYear()}`,
  });
  const years = (count) => ({
    start: (ms) => Date.UTC(Math.floor(new Date(ms).getUTCFullYear() / count) * count, 0, 1),
    next: (ms) => Date.UTC(new Date(ms).getUTCFullYear() + count, 0, 1),
    says: (at) => String(at.getUTCFullYear()),
  });
  const even = (step, says) => ({ start: (ms) => Math.floor(ms / step) * step, next: (ms) => ms + step, says });
  const day = (at, before) => `${at.getUTCDate()} ${MONTHS[at.getUTCMonth()]}`
    + (before && at.getUTCFullYear() === before.getUTCFullYear() ? "" : ` ${at.getUTCFullYear()}`);
  const clock = (digits) => (at, before) => {
    const text = `${two(at.getUTCHours())}:${two(at.getUTCMinutes())}` + (digits ? `:${two(at.getUTCSeconds())}` : "");
    const same = before && before.toISOString().slice(0, 10) === at.toISOString().slice(0, 10);
    return same ? text : `${at.getUTCDate()} ${MONTHS[at.getUTCMonth()]} ${text}`;
  };
  const STEPS = [
    ...[1, 5, 15, 30].map((n) => even(n * SECOND, clock(true))),
    ...[1, 2, 5, 10, 15, 30].map((n) => even(n * MINUTE, clock(false))),
    ...[1, 2, 3, 6, 12].map((n) => even(n * HOUR, clock(false))),
    ...[1, 2, 7, 14].map((n) => even(n * DAY, day)),
    ...[1, 3, 6].map(months),
    ...[1, 2, 5, 10, 20, 50, 100].map(years),
  ];

  // the first place of all that is not below `value`; `sorted` rises
  function firstAt(sorted, value) {
    let low = 0, high = sorted.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (sorted[middle] < value) low = middle + 1; else high = middle;
    }
    return low;
  }

  // Ticks at the starts of years, months, days, hours …, whichever still fit `pixels`, on an axis that shows places
  // `from` to `to`; `places` and their times `times` (ms) both rise. No two ticks say the same.
  function times(places, times, from, to, pixels) {
    const first = Math.min(firstAt(places, from), places.length - 1);
    const last = Math.max(first, firstAt(places, to + 1e-9) - 1);
    let fallback = null;
    for (const step of STEPS) {
      if ((times[last] - times[first]) / (step.next(step.start(times[first])) - step.start(times[first])) > 400) continue;
      const found = within(step, places, times, first, last);
      if (found.length >= 2 && fits(found, from, to, pixels)) return shown(found);
      if (found.length >= 1) fallback ??= found;
    }
    const ends = [...new Set([first, last])].map((k) => ({ place: places[k], label: new Date(times[k]).toISOString().slice(0, 10) }));
    const one = fallback && fallback.length === 1 && fits(fallback, from, to, pixels) ? fallback : ends;
    return shown(fits(one, from, to, pixels) && new Set(one.map((tick) => tick.label)).size === one.length ? one : one.slice(0, 1));
  }

  function within(step, places, times, first, last) {
    const found = [];
    let before = null;
    for (let at = step.start(times[first]); at <= times[last]; at = step.next(at)) {
      if (at < times[first]) continue;
      const k = firstAt(times, at);
      if (found.length && found.at(-1).place === places[k]) continue; // a gap holds several starts: the first stands
      const moment = new Date(at);
      found.push({ place: places[k], label: step.says(moment, before) });
      before = moment;
    }
    return found;
  }

  function fits(ticks, from, to, pixels) {
    const scale = pixels / Math.max(to - from, 1e-9), width = (tick) => 7.5 * tick.label.length + 14;
    return ticks.every((tick, n) => n === 0
      || (tick.place - ticks[n - 1].place) * scale >= (width(tick) + width(ticks[n - 1])) / 2);
  }

  const shown = (ticks) => ({ tickvals: ticks.map((tick) => tick.place), ticktext: ticks.map((tick) => tick.label), tickangle: 0 });

  // A scale of prices between `low` and `high`, in plotly's terms; logarithmic where those that came, `least` to
  // `most`, differ by more than LOG_FROM times.
  function prices(low, high, least, most, says) {
    if (!(least > 0 && low > 0 && most > LOG_FROM * least)) {
      const pad = (high - low) * 0.06 || Math.abs(high) * 0.01 || 1;
      return { type: "linear", range: [low - pad, high + pad] };
    }
    const ends = [Math.log10(low), Math.log10(high)], pad = (ends[1] - ends[0]) * 0.04;
    const decades = ends[1] - ends[0], digits = decades > 4 ? [1] : decades > 1.6 ? [1, 2, 5] : [1, 1.5, 2, 3, 4, 5, 7];
    const tickvals = [];
    for (let power = Math.floor(ends[0]); power <= ends[1]; power++) {
      for (const digit of digits) {
        const value = digit * 10 ** power;
        if (value >= low && value <= high) tickvals.push(value);
      }
    }
    return { type: "log", range: [ends[0] - pad, ends[1] + pad], tickvals, ticktext: tickvals.map(says) };
  }

  return { times, prices, firstAt };
})();
