"""The page's tables, as HTML that reads without scripts. Every text from outside is escaped here."""

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from htfi.apps.cli.report.amendments import LOCAL, AmendmentCounts
from htfi.apps.cli.report.facts import ReportFacts
from htfi.apps.cli.report.news_answers import MIN_INSTANTS, NewsAnswers, PairedScore
from htfi.apps.cli.report.notable import NotableDecision
from htfi.apps.cli.report.readings import audit_html, headlines_html, summary_html
from htfi.apps.cli.report.run_survey import RunSurvey, SeriesScore
from htfi.apps.cli.report.stated_confidence import stated_html
from htfi.apps.cli.summary import words_beside_best
from htfi.apps.display.drawing import format_percent
from htfi.domain.counts import counted
from htfi.domain.decision import Regime
from htfi.domain.time import format_ns
from htfi.forecasting.scores import ScoreRow
from htfi.library.charts.fan import format_price
from htfi.narrative.audit import rule_note
from htfi.narrative.rationale.units import reader_names
from htfi.wiring.notice_file import InputNotices

SERIES_LISTED = 500
NOTICES_LISTED = 50
_TEXT_CHARS = 420


def facts_html(facts: ReportFacts, survey: RunSurvey) -> str:
    num_withheld = sum(tally.num_withheld for tally in survey.series.values())
    num_aside = sum(reason.count for reason in facts.quarantine.values())
    figures = [
        ("decisions", f"{survey.num_lines:,}"),
        ("series", f"{len(survey.series):,}"),
        ("events used", f"{survey.num_events:,}"),
        ("withheld by policy", f"{num_withheld:,}"),
        ("rows set aside", f"{num_aside:,}"),
        ("rows repaired", f"{facts.repaired.count:,}"),
    ]
    html = "".join(f"<div><b>{value}</b><span>{name}</span></div>" for name, value in figures)
    sources = ", ".join(
        f"{escape(name)} <i>rows {first:,}–{last:,}</i>"
        for name, (first, last) in sorted(survey.sources.items())
    )
    models = ", ".join(f"{escape(name)} {escape(version)}" for name, version in sorted(survey.models.items()))
    rows = [
        ("from", f"{format_ns(survey.start_ns)} to {format_ns(survey.end_ns)}"),
        ("sources", sources),
        ("models", models),
        ("settings digest", " ".join(f"<code>{escape(digest)}</code>" for digest in survey.digests)),
    ]
    rows.append(("ledger root", f"<code>{facts.root}</code> over {facts.size:,} entries"))
    note = escape(facts.note)
    rows.append(("signed checkpoint", f"<details><summary>C2SP note</summary><pre>{note}</pre></details>"))
    if num_withheld:
        reasons = "; ".join(f"{escape(reason)} ({count:,})" for reason, count in survey.withheld.items())
        rows.append(("withheld because", reasons))
    listed = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in rows)
    return f'<div class="figures">{html}</div><dl>{listed}</dl>'


def scores_html(survey: RunSurvey) -> str:
    """CRPS of each name, absolute and beside the random walk, with coverage."""
    axes = survey.axes
    num = survey.num.sum(axis=0)  # [H]
    num_by_name = survey.num_by_name.sum(axis=0)  # [H, K]
    crps = survey.crps.sum(axis=0)  # [H, K]
    baseline = survey.baseline
    places = {level: k for k, level in enumerate(axes.levels)}
    head = "".join(
        f'<th colspan="3" class="group">{_bars(h)} ahead <i>n = {int(n):,}</i></th>'
        for h, n in zip(axes.horizons, num, strict=True)
    )
    second = "<th>vs walk</th><th>coverage</th><th>CRPS</th>" * len(axes.horizons)
    rows: list[str] = []
    for k, name in enumerate(axes.names):
        cells: list[str] = []
        for h in range(len(axes.horizons)):
            if not num_by_name[h, k]:
                cells.append("<td>–</td>" * 3)
                continue
            is_same = (
                num_by_name[h, k] == num_by_name[h, baseline]
            )  # of other forecasts no ratio means anything
            ratio = crps[h, k] / crps[h, baseline] if is_same and crps[h, baseline] > 0 else float("nan")
            cover = "–"
            if 0.05 in places and 0.95 in places:
                share = (survey.below[h, k, places[0.95]] - survey.below[h, k, places[0.05]]) / num_by_name[
                    h, k
                ]
                cover = f"{share:.1%}"
            better = " better" if ratio < 0.995 else ""
            cells.append(
                f'<td class="group{better}">{_ratio(ratio)}</td><td>{cover}</td>'
                f"<td>{crps[h, k] / num_by_name[h, k]:.5f}</td>"
            )
        strong = ' class="strong"' if k == 0 else ""
        rows.append(f"<tr{strong}><th>{escape(plain_name(name))}</th>{''.join(cells)}</tr>")
    heads = f"<tr><th></th>{head}</tr><tr><th></th>{second}</tr>"
    best = beside_best(survey)
    note = f'<p class="note">Beside its best expert: {escape(best)}.</p>' if best else ""
    return f"<table><thead>{heads}</thead><tbody>{''.join(rows)}</tbody></table>{note}"


def beside_best(survey: RunSurvey) -> str:
    """The fused forecast's CRPS over that of the expert that turned out best, by horizon; empty without scores."""
    rows = [
        ScoreRow(name, horizon, int(num), float(crps / num), math.nan)
        for h, horizon in enumerate(survey.axes.horizons)
        for name, num, crps in zip(
            survey.axes.names,
            survey.num_by_name[:, h].sum(axis=0),
            survey.crps[:, h].sum(axis=0),
            strict=True,
        )
        if num
    ]
    return words_beside_best(rows)


def _ratio(ratio: float) -> str:
    return f"{ratio:.3f}" if math.isfinite(ratio) else "–"


def regimes_html(survey: RunSurvey) -> str:
    head = "".join(f"<th>{_bars(h)} ahead</th><th>n</th>" for h in survey.axes.horizons)
    rows: list[str] = []
    for r, regime in enumerate(Regime):
        cells: list[str] = []
        for h in range(len(survey.axes.horizons)):
            num, within = survey.regime_num[r, h], survey.regime_within[r, h]
            cells.append(f"<td>{within / num:.1%}</td>" if num else "<td>–</td>")
            cells.append(f'<td class="quiet">{int(num):,}</td>')
        rows.append(f"<tr><th>{_regime(regime.value)}</th>{''.join(cells)}</tr>")
    return f"<table><thead><tr><th></th>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def notable_html(survey: RunSurvey) -> str:
    surprises = _noted_rows(survey.surprises, "× half band")
    widest = _noted_rows(survey.widest, "× usual width")
    html = f"<h3>Worst surprises</h3>{surprises}" if survey.surprises else ""
    return html + (f"<h3>Widest bands</h3>{widest}" if survey.widest else "")


def readings_html(survey: RunSurvey) -> str:
    """Each reader's count of right directions, and the strongest views with what came."""
    readers = survey.readings.readers
    late = _amendments_html(survey.amendments) if survey.amendments.has_remote_or_late else ""
    if not readers:
        return (
            late + answers_html(survey.answers) + stated_html(survey.stated) + summary_html(survey.news)
            or '<p class="note">No model read news in this run.</p>'
        )
    names = reader_names(list(readers))
    counts: list[str] = []
    for name, tally in sorted(readers.items()):
        right = f"{tally.num_right / tally.num_called:.0%}" if tally.num_called else "–"
        counts.append(
            f"<tr>{_reader(name, names)}<td>{right}</td><td>{tally.num_called:,}</td><td>{tally.num_views:,}</td></tr>"
        )
    head = "<th>reader</th><th>right</th><th>with a direction</th><th>views</th>"
    html = f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{"".join(counts)}</tbody></table></div>'
    html += "".join(
        f'<p class="note">{escape(rule_note(rule))}</p>' for rule in survey.readings.rules.values()
    )
    html += _tilt_html(survey)
    rows: list[str] = []
    for read in survey.readings.strongest():
        way = "up" if read.direction > 0 else "down"
        rows.append(
            f"<tr><th>{format_ns(read.as_of_ns)[:16].replace('T', ' ')}</th><td>{escape(read.series)}</td>"
            f"<td>{way} {read.size_sigmas:.2f} σ</td>"
            f'<td data-name="volatility">{read.volatility_multiplier:.2f}×</td>'
            f'<td data-name="confidence">{read.confidence:.0%}</td>'
            f'<td data-name="outcome">{format_percent(math.expm1(read.outcome))}</td>'
            f'<td class="text">{escape(_shorten(read.news, _TEXT_CHARS))}'
            f"{headlines_html(read.shown)}{audit_html(read.audit)}</td></tr>"
        )
    late += answers_html(survey.answers) + stated_html(survey.stated) + summary_html(survey.news)
    if not rows:
        return html + late
    head = (
        "<th>as of (UTC)</th><th>series</th><th>view</th><th>volatility</th><th>confidence</th><th>outcome</th>"
        '<th class="text">news and reason</th>'
    )
    return f"{html}{late}<h3>Strongest views</h3>{_carried_note(survey)}{_words_table(head, rows)}"


def _carried_note(survey: RunSurvey) -> str:
    """What marks in headlines mean, and for how many of the views none are held; empty without headlines."""
    shown = [read.shown for read in survey.readings.strongest() if read.shown]
    if not shown:
        return ""
    num_without = sum(all(one.words is None for one in headlines) for headlines in shown)
    how = "Run with <code>narrative.trace</code> to record it, or <code>htfi ledger explain DIR ID --trace</code>."
    if num_without == len(shown):
        return f'<p class="note">Which words carried these views is not in the record. {how}</p>'
    note = (
        "Marked words carried the view: without the word its model would have been less sure of its answer, the "
        "stronger the mark the more. Words support each other, so a word without a mark may still count."
    )
    if num_without:
        note += f" For {counted(num_without, 'view')} the record holds no weights. {how}"
    return f'<p class="note">{note}</p>'


def answers_html(answers: NewsAnswers) -> str:
    """The decisions between two bars beside those that they replaced; empty where there was none."""
    if not (answers.num or answers.num_withheld):
        return ""
    note = f"{counted(answers.num, 'decision')} answered {counted(answers.num_items, 'item')} of news between two bars"
    if answers.num_withheld:
        note += f", {answers.num_withheld:,} more were withheld by policy"
    if answers.num_suppressed:
        note += (
            f"; {counted(answers.num_suppressed, 'item')} that mattered were left to the bars by a quiet rule"
        )
    rows = "".join(
        f"<tr><th>{_bars(horizon)}</th><td>{_change(pairs)}</td><td>{pairs.num:,}</td>"
        f"<td>{pairs.standing / pairs.num:.5f}</td><td>{pairs.answer / pairs.num:.5f}</td></tr>"
        for horizon, pairs in sorted(answers.scores.items())
    )
    head = "<th>ahead</th><th>change</th><th>pairs</th><th>CRPS, standing</th><th>CRPS, answer</th>"
    table = _scrolling_table(head, rows)
    said = (
        f" Each is scored against the decision on the bar before, to the same end; lower is better. A change is stated "
        f"with its 95% interval once outcomes of {MIN_INSTANTS} instants are known."
        if rows
        else ""
    )
    return f'<h3>Answered between bars</h3><p class="note">{note}.{said}</p>{table}'


def _change(pairs: PairedScore) -> str:
    half_width = pairs.half_width
    return "too few" if half_width is None else f"{pairs.change:+.2%} ± {half_width:.2%}"


def _tilt_html(survey: RunSurvey) -> str:
    """What views were worth: forecasts that they have changed, beside the numbers alone."""
    weighed = survey.readings.weighed
    names = reader_names(list(dict.fromkeys(narrator for narrator, _ in weighed)))
    rows = "".join(
        f"<tr>{_reader(narrator, names)}<td>{_bars(horizon)}</td>"
        f"<td>{tally.released / tally.numbers - 1 if tally.numbers else 0.0:+.2%}</td><td>{tally.weight:.0%}</td>"
        f"<td>{tally.num:,}</td><td>{tally.numbers / tally.num:.5f}</td><td>{tally.released / tally.num:.5f}</td></tr>"
        for (narrator, horizon), tally in sorted(weighed.items())
    )
    if not rows:
        return ""
    head = (
        "<th>reader</th><th>ahead</th><th>change</th><th>weight at the end</th><th>forecasts</th>"
        "<th>CRPS, numbers alone</th><th>CRPS as released</th>"
    )
    late = survey.amendments
    deep = (
        f" Where numbers and news disagreed, {late.num_deepened:,} decisions were amended by a reading in depth; "
        f"{late.num_direction_changed:,} of them changed direction."
        if late.num_deepened
        else ""
    )
    ahead = (
        f" {late.num_verified:,} decisions used a view that was prepared for a scheduled announcement; the news "
        "itself, "
        f"read right after, had the same direction for {late.num_same_direction:,} of them."
        if late.num_verified
        else ""
    )
    return (
        '<h3>What they were worth</h3><p class="note">A view moves a forecast by the weight that its reader’s '
        f"earlier views have earned. Change is that of the CRPS; lower is better.{deep}{ahead}</p>"
        f'<div class="scroll"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _scrolling_table(head: str, rows: str) -> str:
    """A table that scrolls sideways where the page is narrow; empty without rows."""
    if not rows:
        return ""
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _amendments_html(late: AmendmentCounts) -> str:
    """Where readings were written, and what became of those that the target could not write in time."""
    rows = "".join(
        f"<tr><th>{escape(_shorten(place, 80)) if place != LOCAL else 'here'}</th><td>{tally.num_answers:,}</td>"
        f"<td>{tally.num_provisional:,}</td><td>{tally.num_amendments:,}</td></tr>"
        for place, tally in sorted(late.places.items())
    )
    head = "<th>where</th><th>readings</th><th>provisional</th><th>amendments</th>"
    table = _scrolling_table(head, rows)
    note = "The target generated every reading in time."
    if late.num_provisional:
        same = f", {late.num_confirmed:,} of them to the same answer" if late.num_amended else ""
        open_still = max(0, late.num_provisional - late.num_amended)
        left = f"; {open_still:,} still await the target" if open_still else ""
        note = (
            f"{late.num_provisional:,} readings were provisional: the target was late, so the draft finished them. "
            f"The target amended {late.num_amended:,}{same}{left}. The scores above count each forecast once."
        )
    return f'<h3>Where readings were generated</h3><p class="note">{note}</p>{table}'


def _reader(name: str, names: Mapping[str, str]) -> str:
    return f'<th class="name" title="{escape(name)}">{escape(names[name])}</th>'


def series_html(survey: RunSurvey, drawn: Sequence[str]) -> str:
    """Every series on a line; those that are drawn can be clicked."""
    tallies = sorted(survey.series.values(), key=lambda tally: tally.name)
    name_of_baseline = survey.axes.names[survey.baseline]
    rows = [_series_row(tally, name_of_baseline, drawn) for tally in tallies[:SERIES_LISTED]]
    head = (
        "<th>series</th><th>last price</th><th>regime now</th><th>CRPS vs walk</th><th>coverage</th>"
        "<th>in shock</th><th>decisions</th><th>withheld</th>"
    )
    more = len(tallies) - SERIES_LISTED
    note = f'<p class="note">and {more:,} more</p>' if more > 0 else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>{note}"


def notices_html(notices: InputNotices) -> str:
    """What was noticed about prices and the calendar, or nothing."""
    parts = (
        ("Prices", notices.prices),
        ("Series without a forecast", notices.series),
        ("Calendar", notices.calendar),
    )
    made = "".join(
        f'<h3>{title}</h3><ul class="notices">{"".join(_notice(line) for line in lines[:NOTICES_LISTED])}</ul>'
        + (f'<p class="note">and {rest:,} more</p>' if (rest := len(lines) - NOTICES_LISTED) > 0 else "")
        for title, lines in parts
        if lines
    )
    return f"<section><h2>Noticed about the input</h2>{made}</section>" if made else ""


def _notice(line: str) -> str:
    return f"<li>{escape(_shorten(line, _TEXT_CHARS))}</li>"


def quarantine_html(facts: ReportFacts) -> str:
    changed = (
        f'<p class="note">Lines of quarantine.jsonl that were changed after the run, and are left out: '
        f"{facts.num_altered_lines:,}. Repeat the run's command to restore the file.</p>"
        if facts.num_altered_lines
        else ""
    )
    reasons = dict(facts.quarantine)
    if facts.repaired.count:
        reasons["repaired, used"] = facts.repaired
    if not reasons:
        return changed or '<p class="note">Every row that was read became an event.</p>'
    rows: list[str] = []
    for name, reason in reasons.items():
        sources = ", ".join(f"{escape(source)} ({count:,})" for source, count in reason.sources.items())
        examples = "".join(
            f"<li>{escape(example.source)}, row {example.row:,}: {escape(example.detail)} "
            f"<code>{escape(_shorten(example.raw, 160))}</code></li>"
            for example in reason.examples
        )
        rows.append(
            f'<tr><th>{escape(name)}</th><td data-name="rows">{reason.count:,}</td>'
            f'<td class="name">{sources}</td><td class="text"><ul>{examples}</ul></td></tr>'
        )
    head = "<th>reason</th><th>rows</th><th>sources</th><th>examples</th>"
    return changed + _words_table(head, rows)


def plain_name(name: str) -> str:
    """'random_walk' as people write it."""
    return name.replace("_", " ")


def _series_row(tally: SeriesScore, baseline: str, drawn: Sequence[str]) -> str:
    base = tally.crps.get(baseline, 0.0)
    ratio = f"{tally.crps['fused'] / base:.3f}" if base > 0 else "–"
    cover = f"{tally.num_within90 / tally.num_scored:.1%}" if tally.num_scored else "–"
    name = escape(tally.name)
    label = f'<button data-series="{name}">{name}</button>' if tally.name in drawn else name
    return (
        f'<tr><th class="name">{label}</th><td>{format_price(tally.last_price)}</td>'
        f"<td>{_regime(tally.regime.value)}</td><td>{ratio}</td><td>{cover}</td>"
        f"<td>{tally.num_shock / tally.num:.1%}</td><td>{tally.num:,}</td><td>{tally.num_withheld:,}</td></tr>"
    )


def _noted_rows(noted: Iterable[NotableDecision], unit: str) -> str:
    rows: list[str] = []
    for note in noted:
        came = "–" if note.outcome is None else format_percent(math.expm1(note.outcome))
        low, high = format_percent(math.expm1(note.low)), format_percent(math.expm1(note.high))
        rows.append(
            f"<tr><th>{format_ns(note.as_of_ns)[:16].replace('T', ' ')}</th><td>{escape(note.series)}</td>"
            f'<td>{_regime(note.regime)}</td><td data-name="{unit}">{note.measure:.1f}</td>'
            f'<td data-name="90% band">{low} … {high}</td><td data-name="outcome">{came}</td>'
            f'<td class="text">{escape(_shorten(note.rationale, _TEXT_CHARS))}</td></tr>'
        )
    head = (
        f"<th>as of (UTC)</th><th>series</th><th>regime</th><th>{unit}</th><th>90% band, next bar</th>"
        '<th>outcome</th><th class="text">rationale</th>'
    )
    return _words_table(head, rows)


def _words_table(head: str, rows: Sequence[str]) -> str:
    """A table with prose in it: on a narrow screen each row is a block of its own."""
    table = f'<table class="words"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table>'
    return f'<div class="scroll">{table}</div>'


def _regime(name: str) -> str:
    return f'<span class="regime {escape(name)}">{escape(name)}</span>'


def _bars(num: int) -> str:
    return f"{num} bar" if num == 1 else f"{num} bars"


def _shorten(text: str, num_chars: int) -> str:
    return text if len(text) <= num_chars else text[: num_chars - 1] + "…"
