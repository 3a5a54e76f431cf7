# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""New York's hours of bars, compiled: the operations of `coming_bars` and `weekly_pattern`, with their bits.

Arrays: n rows of an instant, N series, B bars ahead, C changes of New York's clock, C + 1 distances from UTC.
"""

from libc.math cimport isnan, sqrt
from libc.stdint cimport int16_t, int64_t

cdef extern from "../../domain/portable_math.h" nogil:
    double exact_exp(double x)

ctypedef unsigned char flag

cdef int16_t UNKNOWN = -1


cdef inline int64_t floored(int64_t number, int64_t by) noexcept nogil:
    """number // by, by > 0."""
    return number // by if number >= 0 else -((by - 1 - number) // by)


cdef inline int64_t left_over(int64_t number, int64_t by) noexcept nogil:
    """number % by, by > 0."""
    cdef int64_t left = number % by
    return left + by if left < 0 else left


cdef inline Py_ssize_t changes_until(const int64_t[::1] changes, int64_t at) noexcept nogil:
    """How many changes of the clock came no later."""
    cdef Py_ssize_t low = 0, high = changes.shape[0], middle
    while low < high:
        middle = (low + high) // 2
        if changes[middle] <= at:
            low = middle + 1
        else:
            high = middle
    return low


def fill_week_slots(
    const int64_t[::1] utc_ns, const int64_t[::1] changes, const int64_t[::1] offsets, int64_t slot_ns,
    int64_t week_slots, int64_t[::1] slots,
):
    """`week_slots`, into slots [n]."""
    cdef Py_ssize_t i
    for i in range(utc_ns.shape[0]):
        slots[i] = left_over(
            floored(utc_ns[i] + offsets[changes_until(changes, utc_ns[i])], slot_ns), week_slots
        )


def learn_hours(
    const int64_t[::1] index, const int64_t[::1] slots, int64_t[::1] newest, int16_t[:, ::1] steps, int16_t[:, ::1] seen,
):
    """`ComingBars.learn` of bars that began in these slots."""
    cdef Py_ssize_t i, row
    cdef int64_t before
    cdef int16_t step, last
    for i in range(index.shape[0]):
        row = index[i]
        before = newest[row]
        if before >= 0 and before != slots[i]:
            step = <int16_t>left_over(slots[i] - before, seen.shape[1])
            last = seen[row, before]
            steps[row, before] = step if last == UNKNOWN or step < last else last
            seen[row, before] = step
        newest[row] = slots[i]


def fill_spans(
    const int64_t[::1] index, const int64_t[::1] start_ns, const int64_t[::1] end_ns, const int16_t[:, ::1] steps,
    const int64_t[::1] changes, const int64_t[::1] offsets, int64_t slot_ns, int64_t most_bars,
    int64_t[:, :] begins, int64_t[:, :] ends,
):
    """`ComingBars.spans`, into begins and ends [n, B]."""
    cdef Py_ssize_t i, b, num = begins.shape[1], first, last
    cdef int64_t length, local, within, begin, offset, place, usual, after, largest = offsets[0], smallest = offsets[0]
    cdef int16_t step
    for b in range(offsets.shape[0]):
        largest, smallest = max(largest, offsets[b]), min(smallest, offsets[b])
    for i in range(index.shape[0]):
        length = max(end_ns[i] - start_ns[i], 1)
        local = start_ns[i] + offsets[changes_until(changes, start_ns[i])]
        within = min(max(slot_ns // length, 1), most_bars)
        begin = local - left_over(local, slot_ns)
        offset, place = local - begin, 0
        if within > 1:
            place, offset = min(offset // length, within - 1), 0
        usual = (length + slot_ns - 1) // slot_ns
        for b in range(num):
            place += 1
            if place == within:
                place = 0
                step = steps[index[i], left_over(floored(begin, slot_ns), steps.shape[1])]
                begin += (usual if step == UNKNOWN else step) * slot_ns
            begins[i, b] = begin + offset + place * length
        first = changes_until(changes, begins[i, 0] - largest)
        last = changes_until(changes, begins[i, num - 1] - smallest)
        for b in range(num):
            if first == last:
                after = offsets[first]
            else:  # a change of the clock is near
                after = offsets[changes_until(changes, begins[i, b] - largest)]
                after = offsets[changes_until(changes, begins[i, b] - after)]
            begins[i, b] -= after
            ends[i, b] = begins[i, b] + length


def fill_pattern(
    const int64_t[::1] index, const int64_t[:, :] begins_ns, const double[:, ::1] by_day, const double[:, ::1] by_week,
    const int64_t[::1] changes, const int64_t[::1] offsets, int64_t slot_ns, double[:, :] factors,
):
    """`WeeklyPattern.factors`, into factors [n, B]: one exponential for the bars in a row that begin in one slot."""
    cdef Py_ssize_t i, b, row, now, before
    cdef int64_t local, slot, newest, week
    cdef double factor
    for i in range(index.shape[0]):
        row, before, newest, factor = index[i], -1, 0, 1.0
        for b in range(begins_ns.shape[1]):
            now = changes_until(changes, begins_ns[i, b])
            local = begins_ns[i, b] + offsets[now]
            if now != before or local < newest or local - newest >= slot_ns:
                slot = floored(local, slot_ns)
                before, newest = now, slot * slot_ns
                week = left_over(slot, by_week.shape[1])
                factor = exact_exp(by_day[row, week % by_day.shape[1]] + by_week[row, week])
            factors[i, b] = factor


def join_spans(
    const flag[::1] daily, const int64_t[:, ::1] begins, const int64_t[:, ::1] ends, double gap_bars, int64_t never,
    int64_t[:, ::1] spans,
):
    """`UsualBars._joined`, into spans [n, 1 + B]."""
    cdef Py_ssize_t i, b
    cdef int64_t longest
    for i in range(begins.shape[0]):
        longest = <int64_t>(gap_bars * <double>(ends[i, 1] - begins[i, 1]))
        spans[i, 0] = begins[i, 0]
        for b in range(1, begins.shape[1]):
            spans[i, b] = begins[i, b]
            if ends[i, b - 1] != never and (daily[i] or begins[i, b] - ends[i, b - 1] <= longest):
                spans[i, b] = ends[i, b - 1]


def fill_ahead(
    const double[:, ::1] pattern, const double[:, :] events, Py_ssize_t first, const int64_t[::1] horizons,
    double[:, ::1] factors,
):
    """`KnownVariance._roots`, into factors [n, H], of bars from `first` on; whether any is not 1."""
    cdef Py_ssize_t i, b, j
    cdef double total
    cdef bint is_any = False, has_events = events is not None
    for i in range(pattern.shape[0]):
        total, j = 0.0, 0
        for b in range(horizons[horizons.shape[0] - 1]):
            total += pattern[i, first + b] * events[i, first + b] if has_events else pattern[i, first + b]
            if b + 1 == horizons[j]:
                factors[i, j] = sqrt(total / <double>horizons[j])
                is_any = is_any or factors[i, j] != 1.0
                j += 1
    return is_any


def divide_outcomes(
    const int64_t[::1] index, const int64_t[::1] ages, const int64_t[::1] horizons, const double[:, :, ::1] waiting,
    const double[:, :] outcomes, double[:, ::1] divided,
):
    """`KnownVariance.divided`, into divided [n, H]; whether any was changed."""
    cdef Py_ssize_t i, j
    cdef double by
    cdef bint is_any = False
    for i in range(index.shape[0]):
        for j in range(horizons.shape[0]):
            by = waiting[index[i], j, left_over(ages[i] - horizons[j], waiting.shape[2])]
            is_any = is_any or by != 1.0
            divided[i, j] = outcomes[i, j] / by
    return is_any


def learn_pattern(
    const int64_t[::1] index, const int64_t[::1] slots, const int64_t[::1] length_ns, const double[::1] log_variance,
    double[:, ::1] by_day, double[:, ::1] by_week, float[:, ::1] day_visits, float[:, ::1] week_visits,
    double[::1] anchors, double[::1] num, int64_t slot_ns, double anchor_slots, double bound, float day_prior,
    float day_memory, float week_prior, float week_memory,
):
    """`WeeklyPattern.learn`."""
    cdef Py_ssize_t i, row, hour, week
    cdef double within, visit, gain, other, surprise, of_day, of_week
    cdef float days, weeks, trust
    for i in range(index.shape[0]):
        row, week = index[i], slots[i]
        hour = week % by_day.shape[1]
        within = <double>max(slot_ns // max(length_ns[i], 1), 1)
        visit = 1.0 / within
        gain, other = 1.0 / (num[row] + 1.0), 1.0 / (anchor_slots * within)
        gain = gain if gain > other else other
        anchors[row] += gain * (log_variance[i] - anchors[row])
        num[row] += 1.0
        surprise = log_variance[i] - anchors[row]
        surprise = surprise if surprise > -bound or isnan(surprise) else -bound
        surprise = surprise if surprise < bound or isnan(surprise) else bound
        days, weeks = day_visits[row, hour], week_visits[row, week]
        trust = (days if days < day_memory else day_memory) + day_prior
        trust = trust + <float>1.0
        of_day = visit * surprise / trust
        trust = (weeks if weeks < week_memory else week_memory) + week_prior
        trust = trust + <float>1.0
        of_week = visit * (surprise - of_day) / trust
        by_day[row, hour] += of_day
        by_week[row, week] += of_week
        day_visits[row, hour] = <float>(days + visit)
        week_visits[row, week] = <float>(weeks + visit)
