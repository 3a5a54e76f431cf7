# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""What series learn from a bar, compiled: the operations of the modules that call it, in their order, with their bits.

numpy does the same where no compiler was at hand; `tests/property/test_learning_compiled.py` compares the two. Arrays
have the shapes that those modules give: n rows of an instant, N series, G groups, H horizons, K experts or regressors,
Q levels, Z zones, A regimes and all times, L the longest horizon.
"""

from libc.math cimport INFINITY, NAN, fabs, isfinite, isnan, rint, sqrt
from libc.stdint cimport int64_t

cdef extern from "../domain/portable_math.h" nogil:
    double exact_log(double x)
    double exact_exp(double x)
    double nearest(double x)
    void exact_exps(double *x, long num)

ctypedef unsigned char flag

cdef double LN2 = 0.6931471805599453


cdef inline double least(double a, double b) noexcept nogil:
    """As numpy.minimum: NaN where either is."""
    return a if a < b or isnan(a) else b


cdef inline double most(double a, double b) noexcept nogil:
    """As numpy.maximum: NaN where either is."""
    return a if a > b or isnan(a) else b


cdef inline double clamp(double x, double bound) noexcept nogil:
    return least(most(x, -bound), bound)


cdef double sum_of(const double *x, Py_ssize_t num) noexcept nogil:
    """As numpy.add.reduce of an axis whose numbers are neighbours."""
    return 0.0 + pairwise(x, num)


cdef double pairwise(const double *x, Py_ssize_t num) noexcept nogil:
    cdef double sums[8]
    cdef double total
    cdef Py_ssize_t i, j, half
    if num < 8:
        total = 0.0
        for i in range(num):
            total += x[i]
        return total
    if num <= 128:
        for j in range(8):
            sums[j] = x[j]
        for i in range(8, num - num % 8, 8):
            for j in range(8):
                sums[j] += x[i + j]
        total = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]))
        for i in range(num - num % 8, num):
            total += x[i]
        return total
    half = num // 2
    half -= half % 8
    return pairwise(x, half) + pairwise(x + half, num - half)


cdef inline double mean_of_last(const double *window, Py_ssize_t width, Py_ssize_t num) noexcept nogil:
    """The mean of the last `num` of a window."""
    return sum_of(window + width - num, num) / num


cdef inline void push(double *window, Py_ssize_t width, double newest) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(width - 1):
        window[i] = window[i + 1]
    window[width - 1] = newest


cdef inline Py_ssize_t slot_before(int64_t age, int64_t bars, Py_ssize_t length) noexcept nogil:
    """Where a ring of `length` holds what was written `bars` before `age`."""
    cdef int64_t slot = (age - bars) % length
    return slot + length if slot < 0 else slot


# --- panel

def read_bars(
    list bars, const int64_t[::1] index, int64_t[::1] starts_ns, int64_t[::1] ends_ns, double[::1] volume,
    double[::1] moves, double[::1] ranges, double[::1] withins, int64_t[::1] ages, const int64_t[::1] num_bars,
    const int64_t[::1] gaps_ns, int64_t[::1] last_ends_ns, double[::1] log_closes, int64_t no_length,
):
    """`Panel._read` of bars ordered by row; fills starts, ends, volume, moves, ranges, those within and ages [n]."""
    cdef Py_ssize_t i, row
    cdef double first, high, low, last, before, top, bottom
    cdef bint is_fresh
    for i in range(index.shape[0]):
        bar, row = bars[i], index[i]
        last = exact_log(bar.close)
        first, high, low = log_or(bar.open, last), log_or(bar.high, last), log_or(bar.low, last)
        starts_ns[i], ends_ns[i], volume[i] = bar.start_ns, bar.end_ns, bar.volume
        ages[i] = num_bars[row]
        is_fresh = isnan(log_closes[row]) or (
            gaps_ns[row] != no_length and starts_ns[i] - last_ends_ns[row] > gaps_ns[row]
        )
        before = first if is_fresh else log_closes[row]
        moves[i], ranges[i], withins[i] = last - before, 0.0, 0.0
        if high > low:
            top, bottom = max(max(max(first, high), low), last), min(min(min(first, high), low), last)
            ranges[i], withins[i] = max(top, before) - min(bottom, before), top - bottom
        last_ends_ns[row], log_closes[row] = ends_ns[i], last


cdef inline double log_or(double price, double otherwise) noexcept nogil:
    return exact_log(price) if price > 0.0 and isfinite(price) else otherwise


def follow_volumes(
    list bars, const int64_t[::1] index, const int64_t[::1] gaps_ns, const double[::1] log_closes,
    double[::1] usual_volumes, int64_t no_length, double candidate, double gain, double most_spike,
):
    """Takes the volumes of bars ordered by row into usual ones, as `splits.follow_volume`, unless one of them may open
    after a split: whether one does."""
    cdef Py_ssize_t i, row
    cdef double first, volume, usual
    cdef bint is_any = False
    for i in range(index.shape[0]):
        is_any = is_any or gaps_ns[index[i]] == no_length
    if not is_any:
        return False
    for i in range(index.shape[0]):
        first = bars[i].open
        if not (first > 0.0 and isfinite(first)) or fabs(exact_log(first) - log_closes[index[i]]) > candidate:
            return True
    for i in range(index.shape[0]):
        row, volume = index[i], bars[i].volume
        usual = usual_volumes[row]
        if volume > 0.0:
            usual_volumes[row] = volume if usual <= 0.0 else usual + gain * (least(volume, most_spike * usual) - usual)
    return False


def measure(
    double[::1] moves, double[::1] ranges, double[::1] withins, double[::1] uncut, const int64_t[::1] index,
    int64_t[::1] ages, const int64_t[::1] horizons, double[::1] usual_vars, int64_t[::1] num_bars,
    double[::1] path, double[:, ::1] paths, double[::1] returns, double[::1] variance, double[::1] log_variance,
    double[::1] within_log_variance, double[::1] usual, double[:, ::1] outcomes, double tick, double sigma_floor,
    int min_bars, double outlier_ratio, double parkinson, double usual_gain, double unchanged_gain,
):
    """`Panel._measure`, of moves and ranges [n], and moves before any division; fills returns, variances, usual [n],
    outcomes [n, H]."""
    cdef Py_ssize_t i, j, row, longest = paths.shape[1], slot
    cdef double move, size, limit, gain, root = sqrt(parkinson), usual_var, far, near
    cdef int64_t age
    cdef bint moved
    for i in range(index.shape[0]):
        row, age, move, far = index[i], ages[i], moves[i], ranges[i]
        usual_var = usual_vars[row]
        size = most(fabs(move), root * far)
        usual[i] = most(sqrt(usual_var) if age > 0 else size, sigma_floor)
        limit = outlier_ratio * usual[i] if age >= min_bars and usual[i] > tick else INFINITY
        returns[i] = clamp(move, limit)
        moved = move != 0.0 or far > 0.0
        num_bars[row] = age + 1 if moved or age > 0 else 0
        gain = most(1.0 / (<double>age + 1.0), usual_gain if moved else unchanged_gain)
        usual_vars[row] = usual_var + gain * (returns[i] * returns[i] - usual_var)
        variance[i] = parkinson * far * far if far > 0.0 else returns[i] * returns[i]
        variance[i] = least(most(variance[i], 0.01 * usual[i] * usual[i]), limit * limit)
        log_variance[i] = exact_log(variance[i])
        near = parkinson * withins[i] * withins[i] if withins[i] > 0.0 else variance[i]
        near = least(most(near, 0.01 * usual[i] * usual[i]), limit * limit)
        within_log_variance[i] = exact_log(near)
        path[row] += uncut[i]
        for j in range(horizons.shape[0]):
            outcomes[i, j] = NAN
            if age >= horizons[j]:
                outcomes[i, j] = path[row] - paths[row, slot_before(age, horizons[j], longest)]
        paths[row, age % longest] = path[row]


# --- what waits for its outcome

def collect_matured(
    list rings, const int64_t[:, ::1] regime_ring, const int64_t[::1] index, const int64_t[::1] ages,
    const int64_t[::1] horizons, const double[:, ::1] outcomes, double[:, :, :, ::1] waited, flag[:, :, ::1] known,
    double[:, ::1] outcome, int64_t[:, ::1] regimes,
):
    """`Forecaster._collect_matured`; how many of the forecasts have an outcome."""
    cdef Py_ssize_t i, j, k, q, row, slot, num = 0
    cdef const float[:, :, :, ::1] ring
    for j in range(horizons.shape[0]):
        ring = rings[j]
        for i in range(index.shape[0]):
            row, slot = index[i], ages[i] % horizons[j]
            outcome[i, j] = outcomes[i, j] if isfinite(outcomes[i, j]) else 0.0
            regimes[i, j] = regime_ring[row, slot_before(ages[i], horizons[j], regime_ring.shape[1])]
            for k in range(waited.shape[1]):
                for q in range(waited.shape[3]):
                    waited[i, k, j, q] = ring[row, slot, k, q]
                known[i, k, j] = isfinite(waited[i, k, j, 0]) and isfinite(outcomes[i, j])
                num += known[i, k, j]
    return num


def queue_newest(
    list rings, int64_t[:, ::1] regime_ring, const int64_t[::1] index, const int64_t[::1] ages,
    const int64_t[::1] horizons, const double[:, :, ::1] fused, const double[:, :, :, ::1] experts,
    const int64_t[::1] regimes, double[::1] usual_sigma, int64_t[::1] num, Py_ssize_t low, Py_ssize_t high,
    double band_sigmas, double window,
):
    """`Forecaster._queue`, but for opinions."""
    cdef Py_ssize_t i, j, k, q, row, slot
    cdef float[:, :, :, ::1] ring
    cdef double width
    for j in range(horizons.shape[0]):
        ring = rings[j]
        for i in range(index.shape[0]):
            row, slot = index[i], ages[i] % horizons[j]
            for q in range(fused.shape[2]):
                ring[row, slot, 0, q] = <float>fused[row, j, q]
                for k in range(experts.shape[1]):
                    ring[row, slot, 1 + k, q] = <float>experts[row, k, j, q]
    for i in range(index.shape[0]):
        row = index[i]
        regime_ring[row, ages[i] % regime_ring.shape[1]] = regimes[row]
        width = fused[row, 0, high] - fused[row, 0, low]
        if isfinite(width):
            num[row] += 1
            width = width / band_sigmas - usual_sigma[row]
            usual_sigma[row] += most(1.0 / most(<double>num[row], 1.0), 1.0 / window) * width


# --- baselines

def fill_random_walk(
    const int64_t[::1] rows, const double[:, ::1] window, const double[::1] root_h, const double[::1] shape,
    double[:, :, ::1] quantiles, double[::1] terms, double floor,
):
    """`RandomWalkExpert.quantiles`. `terms` [W] is overwritten."""
    cdef Py_ssize_t i, j, q, t, width = window.shape[1]
    cdef double mean, sigma
    for i in range(rows.shape[0]):
        mean = sum_of(&window[rows[i], 0], width) / width
        for t in range(width):
            terms[t] = (window[rows[i], t] - mean) * (window[rows[i], t] - mean)
        sigma = most(sqrt(sum_of(&terms[0], width)) / sqrt(<double>(width - 1)), floor)
        for j in range(root_h.shape[0]):
            for q in range(shape.shape[0]):
                quantiles[i, j, q] = sigma * root_h[j] * shape[q]


def filter_variance(
    const int64_t[::1] index, const int64_t[::1] ages, const double[::1] log_variance, double[:, ::1] log_vars,
    const double[::1] gains, const double[::1] shares, const double[::1] root_h, double[:, ::1] scale,
    double[:, ::1] above, double[::1] terms, Py_ssize_t min_bars,
):
    """`HistoricalSimulationExpert.update`. `terms` [D] is overwritten."""
    cdef Py_ssize_t i, j, d, row, num = gains.shape[0]
    cdef double sigma, log_var
    for i in range(index.shape[0]):
        row = index[i]
        for d in range(num):
            log_vars[row, d] += most(1.0 / (<double>ages[i] + 1.0), gains[d]) * (log_variance[i] - log_vars[row, d])
        log_var = product(&log_vars[row, 0], &shares[0], &terms[0], num)
        sigma = exact_exp(0.5 * log_var) if ages[i] + 1 >= min_bars else NAN
        for j in range(root_h.shape[0]):
            scale[row, j] = sigma * root_h[j]
            above[row, j] = 0.5 * (log_var - log_vars[row, num - 1])


# --- residual shapes

cdef inline double half_factor(double slope, double far) noexcept nogil:
    return exact_exp(-(slope * far)) if slope != 0.0 else 1.0


def fill_halves(
    const double[:, :] scale, const double[:, :] above, const double[::1] slopes, double[:, :, ::1] halves,
    double bound,
):
    """`half_scales`, into halves [n, H, 2]."""
    cdef Py_ssize_t i, j
    cdef double far
    for i in range(halves.shape[0]):
        for j in range(halves.shape[1]):
            far = clamp(above[i, j], bound)
            halves[i, j, 0] = scale[i, j] * half_factor(slopes[j], least(far, 0.0))
            halves[i, j, 1] = scale[i, j] * half_factor(slopes[j], far)


def fill_half_quantiles(
    const double[:, :] scale, const double[:, :] above, const double[::1] slopes, const double[:, :, :] shape,
    double[:, :, ::1] quantiles, double bound,
):
    """`half_quantiles`, into quantiles [n, H, Q]."""
    cdef Py_ssize_t i, j, q
    cdef double far, falls, rises
    for i in range(quantiles.shape[0]):
        for j in range(quantiles.shape[1]):
            far = clamp(above[i, j], bound)
            falls = scale[i, j] * half_factor(slopes[j], least(far, 0.0))
            rises = scale[i, j] * half_factor(slopes[j], far)
            for q in range(quantiles.shape[2]):
                quantiles[i, j, q] = (falls if shape[i, j, q] < 0.0 else rises) * shape[i, j, q]


def learn_residuals(
    const int64_t[::1] index, const int64_t[::1] ages, const double[:, :] outcomes, const double[:, :, ::1] halves,
    const int64_t[::1] horizons, double[:, :, :, ::1] kept, float[:, :, ::1] window, int64_t[:, ::1] num,
    double limit,
):
    """`ResidualShapes.learn`, but for what is fitted."""
    cdef Py_ssize_t i, j, row, slot, longest = kept.shape[2], width = window.shape[2]
    cdef double residual
    for i in range(index.shape[0]):
        row = index[i]
        for j in range(horizons.shape[0]):
            slot = slot_before(ages[i], horizons[j], longest)
            residual = outcomes[i, j] / kept[row, j, slot, 1 if outcomes[i, j] > 0.0 else 0]
            if isfinite(residual):
                residual = clamp(residual, limit)
                window[row, j, num[row, j] % width] = <float>residual
                num[row, j] += 1
        slot = ages[i] % longest
        for j in range(horizons.shape[0]):
            kept[row, j, slot, 0], kept[row, j, slot, 1] = halves[i, j, 0], halves[i, j, 1]


# --- regressions

cdef inline double product(const double *x, const double *y, double *terms, Py_ssize_t num) noexcept nogil:
    cdef Py_ssize_t k
    for k in range(num):
        terms[k] = x[k] * y[k]
    return sum_of(terms, num)


def solve(double[:, :, ::1] system, double[:, ::1] found):
    """`solve_normal_equations` of systems [m, K, K+1], which are overwritten; found [m, K]."""
    cdef Py_ssize_t m, i, r, c, size = system.shape[1]
    cdef double head
    for m in range(system.shape[0]):
        for i in range(size):
            head = system[m, i, i]
            for c in range(size + 1):
                system[m, i, c] = system[m, i, c] / head
            for r in range(size):
                if r != i:
                    head = system[m, r, i]
                    for c in range(size + 1):
                        system[m, r, c] = system[m, r, c] - head * system[m, i, c]
        for i in range(size):
            found[m, i] = system[m, i, size]


def learn_regression(
    const int64_t[::1] index, const double[:, :, ::1] x, const double[:, :] y, const flag[:, :] known,
    double[:, :, :, ::1] gram, double[:, :, ::1] moment, const double[:, :, ::1] beta, double[:, ::1] noise,
    double[:, ::1] num, const double[:, ::1] prior_gram, const double[::1] prior_moment, double[::1] terms,
    double keep_share, double noise_prior_bars,
):
    """`DiscountedRegression.learn`. `terms` [K] is overwritten."""
    cdef Py_ssize_t i, j, a, b, row, size = x.shape[2]
    cdef double weight, keep, renewed, target, miss, gain, left
    for i in range(index.shape[0]):
        row = index[i]
        for j in range(x.shape[1]):
            weight = 1.0 if known[i, j] else 0.0
            keep, renewed = 1.0 - weight * (1.0 - keep_share), weight * (1.0 - keep_share)
            target = y[i, j] if known[i, j] else 0.0
            for a in range(size):
                terms[a] = (x[i, j, a] * weight) * beta[row, j, a]
            miss = target - sum_of(&terms[0], size)
            gain = weight * most(1.0 / (num[row, j] + noise_prior_bars), 1.0 - keep_share)
            noise[row, j] += gain * (miss * miss - noise[row, j])
            num[row, j] += weight
            for a in range(size):
                left = x[i, j, a] * weight
                for b in range(size):
                    gram[row, j, a, b] = gram[row, j, a, b] * keep + (
                        left * (x[i, j, b] * weight) + renewed * prior_gram[a, b]
                    )
                moment[row, j, a] = moment[row, j, a] * keep + (left * target + renewed * prior_moment[a])


def learn_pooled(
    Py_ssize_t group, const int64_t[::1] groups, const double[:, :, ::1] x, const double[:, :] y,
    const flag[:, :] known, double[:, :, :, ::1] gram, double[:, :, ::1] moment, const double[:, :, ::1] beta, double[:, ::1] squares,
    double[:, ::1] num, const double[:, ::1] prior_gram, const double[::1] prior_moment, double[:, ::1] terms,
    double num_series, double half_life,
):
    """`PooledRegression.learn` of one group, but for the fit; the bars [H] that these are. `terms` [K+2, K] is overwritten."""
    cdef Py_ssize_t i, j, a, b, size = x.shape[2]
    cdef double weight, keep, target, miss, square, count, left
    cdef list bars = []
    for j in range(x.shape[1]):
        square, count = 0.0, 0.0
        terms[:, :] = 0.0
        for i in range(x.shape[0]):
            if groups[i] != group:
                continue
            weight = 1.0 if known[i, j] else 0.0
            target = y[i, j] if known[i, j] else 0.0
            for a in range(size):
                terms[size + 1, a] = (x[i, j, a] * weight) * beta[group, j, a]
            miss = target - sum_of(&terms[size + 1, 0], size)
            square += miss * miss
            count += weight
            for a in range(size):
                left = x[i, j, a] * weight
                for b in range(size):
                    terms[a, b] += left * (x[i, j, b] * weight)
                terms[size, a] += left * target
        bars.append(count / num_series)
        keep = exact_exp(-LN2 / half_life * (count / num_series))
        squares[group, j] = keep * squares[group, j] + square
        num[group, j] = keep * num[group, j] + count
        for a in range(size):
            for b in range(size):
                gram[group, j, a, b] = keep * gram[group, j, a, b] + (terms[a, b] + (1.0 - keep) * prior_gram[a, b])
            moment[group, j, a] = keep * moment[group, j, a] + (terms[size, a] + (1.0 - keep) * prior_moment[a])
    return bars


# --- the shape of a group's outcomes

cdef inline double drawn_size(double num, double own, double horizon, double expected, double prior_bars) noexcept nogil:
    """`PooledShape._size` of one series and horizon."""
    num = num / horizon
    return (num * own + prior_bars * expected) / (num + prior_bars)


cdef inline double group_size(
    double size, double num, double first_size, double first_num, double bars, double horizon, double independent,
    double prior,
) noexcept nogil:
    """`PooledShape._group_sizes` of one group and horizon."""
    bars = bars / horizon * independent
    return (bars * (size / num) + prior * (first_size / first_num)) / (bars + prior)


def learn_shapes(
    const int64_t[::1] index, const int64_t[::1] ages, const int64_t[::1] groups, const double[:, :] outcomes,
    const double[:, :, ::1] halves, const int64_t[::1] horizons, int64_t[::1] group_of, double[:, :, :, ::1] kept,
    double[:, :, ::1] sized, double[:, ::1] sizes, double[:, ::1] num, double[:, :, ::1] counts,
    double[:, ::1] group_sizes, double[:, ::1] group_num, double[:, ::1] group_bars, double[::1] independent,
    double[::1] owed_bars, double[:, :, ::1] shapes, const double[::1] prior, const double[::1] levels,
    const double[::1] size_bars, double[::1] scratch, double bin_width, double prior_bars, double half_life,
    double group_prior, double most_independent, double shape_prior, double skew_prior,
    double mean_prior, const double[::1] cells,
):
    """`PooledShape.learn`. `scratch` [H (2 + B) + 2 B + Q] is overwritten."""
    cdef Py_ssize_t i, j, b, row, slot, group, longest = sized.shape[2], num_bins = counts.shape[2]
    cdef Py_ssize_t side = (num_bins - 1) // 2, num_horizons = horizons.shape[0], num_of_bars = index.shape[0]
    cdef double reach = bin_width * side, size, place, gain, keep, bars, num_series, expected
    cdef double *seen = &scratch[0]
    cdef double *of_horizon
    cdef bint is_here
    for i in range(num_of_bars):
        group_of[index[i]] = groups[i]
    for group in range(counts.shape[0]):
        is_here = False
        for i in range(num_of_bars):
            if groups[i] == group:
                is_here = True
                break
        if not is_here:
            continue
        num_series = 0.0
        for row in range(group_of.shape[0]):
            num_series += 1.0 if group_of[row] == group else 0.0
        independent[group] = least(num_series, most_independent)
        for j in range(num_horizons):
            of_horizon = seen + j * (2 + num_bins)
            for b in range(2 + num_bins):
                of_horizon[b] = 0.0
            expected = group_size(
                group_sizes[group, j], group_num[group, j], group_sizes[group, 0], group_num[group, 0],
                group_bars[group, j], <double>horizons[j], independent[group], group_prior,
            )
            for i in range(num_of_bars):
                if groups[i] != group:
                    continue
                row = index[i]
                slot = slot_before(ages[i], horizons[j], longest)
                place = outcomes[i, j] / kept[row, j, slot, 1 if outcomes[i, j] > 0.0 else 0]
                size, place = fabs(place), place / sized[row, j, slot]
                slot = ages[i] % longest
                kept[row, j, slot, 0], kept[row, j, slot, 1] = halves[i, j, 0], halves[i, j, 1]
                sized[row, j, slot] = drawn_size(num[row, j], sizes[row, j], <double>horizons[j], expected, prior_bars)
                if isfinite(size) and isfinite(place):
                    gain = 1.0 / least(num[row, j] + 1.0, size_bars[j])
                    size = least(size, reach)
                    of_horizon[2 + side + <Py_ssize_t>rint(clamp(place, reach) / bin_width)] += 1.0
                    sizes[row, j] += gain * (size - sizes[row, j])
                    num[row, j] = least(num[row, j] + 1.0, size_bars[j])
                    of_horizon[0] += size
                    of_horizon[1] += 1.0
        for j in range(num_horizons):  # once all are counted: the sizes of long horizons follow the shortest's
            of_horizon = seen + j * (2 + num_bins)
            bars = of_horizon[1] / num_series
            keep = exact_exp(-LN2 / half_life * bars)
            for b in range(num_bins):
                counts[group, j, b] = keep * counts[group, j, b] + of_horizon[2 + b]
            group_sizes[group, j] = keep * group_sizes[group, j] + of_horizon[0]
            group_num[group, j] = keep * group_num[group, j] + of_horizon[1]
            group_bars[group, j] = keep * group_bars[group, j] + bars
            if j == 0:
                owed_bars[group] += bars
        if owed_bars[group] < 1.0:
            continue
        owed_bars[group] = 0.0
        for j in range(num_horizons):
            fit_shape(
                &counts[group, j, 0], &prior[0], num_bins, &levels[0], levels.shape[0],
                group_bars[group, j] / <double>horizons[j] * independent[group], shape_prior, skew_prior, mean_prior,
                &cells[0], bin_width, seen, &shapes[group, j, 0],
            )


cdef void fit_shape(
    const double *counts, const double *prior, Py_ssize_t num_bins, const double *levels, Py_ssize_t num_levels,
    double num, double prior_bars, double skew_prior, double mean_prior, const double *cells, double bin_width,
    double *scratch, double *shape,
) noexcept nogil:
    """`PooledShape._fit` of counts [B] of one horizon; fills shape [Q]. `scratch` [2 B + Q] is overwritten."""
    cdef Py_ssize_t b, q, low, high, middle
    cdef double *totals = scratch
    cdef double *both = scratch + 2 * num_bins
    cdef double seen = sum_of(counts, num_bins), total = 0.0, wanted, at
    cdef double weight = prior_bars * (seen if seen > 0.0 else 1.0) / most(num, 1.0)
    for b in range(num_bins):
        totals[num_bins + b] = counts[b] + weight * prior[b]
    for b in range(num_bins):
        total = totals[num_bins + b] if b == 0 else total + totals[num_bins + b]
        totals[b] = total
    for q in range(num_levels):
        wanted = levels[q] * total
        low, high = 0, num_bins
        while low < high:  # the first bin whose total is no less
            middle = (low + high) // 2
            if totals[middle] < wanted:
                low = middle + 1
            else:
                high = middle
        b = low if low < num_bins else num_bins - 1
        at = totals[num_bins + b]
        both[q] = bin_width * (b - (num_bins - 1) // 2 - 0.5 + (wanted - (totals[b] - at)) / most(at, 1e-300))
    total = 0.0
    for q in range(num_levels):
        wanted = 0.5 * (both[q] - both[num_levels - 1 - q])
        at = 0.5 * (both[q] + both[num_levels - 1 - q])
        at = wanted + num / (num + skew_prior) * at
        shape[q] = at if q == 0 else most(shape[q - 1], at)
    for q in range(num_levels):
        total += cells[q] * shape[q]
    total = mean_prior / (num + mean_prior) * total
    for q in range(num_levels):
        shape[q] = shape[q] - total


def shapes_of(
    const int64_t[::1] groups, const double[:, :] num, const double[:, :] own, const int64_t[::1] horizons,
    const double[:, ::1] group_sizes, const double[:, ::1] group_num, const double[:, ::1] group_bars,
    const double[::1] independent, const double[:, :, ::1] shapes, double[:, ::1] sizes, double[:, :, ::1] found,
    double prior_bars, double group_prior,
):
    """`PooledShape.of`, into sizes [n, H] and found [n, H, Q]."""
    cdef Py_ssize_t i, j, q, group
    cdef double expected
    for i in range(groups.shape[0]):
        group = groups[i] if groups[i] > 0 else 0
        for j in range(horizons.shape[0]):
            expected = group_size(
                group_sizes[group, j], group_num[group, j], group_sizes[group, 0], group_num[group, 0],
                group_bars[group, j], <double>horizons[j], independent[group], group_prior,
            )
            sizes[i, j] = drawn_size(num[i, j], own[i, j], <double>horizons[j], expected, prior_bars)
            for q in range(shapes.shape[2]):
                found[i, j, q] = shapes[group, j, q]


def fit_residuals(
    const float[:, :, ::1] ranked, const int64_t[:, :] nums, const double[::1] mirrored, const double[::1] half_trust,
    const double[::1] skew_samples, const double[:, ::1] sizes, const double[:, :, ::1] pooled, Py_ssize_t median,
    double[::1] both, double[:, :, ::1] shapes,
):
    """`ResidualShapes._fit` from ranked residuals [n, H, W]; fills shapes [n, H, Q]. `both` [2 Q] is overwritten."""
    cdef Py_ssize_t i, j, q, low, num_levels = shapes.shape[2]
    cdef int64_t last
    cdef double num, at, below, above, even, skew_trust, trust, middle
    for i in range(ranked.shape[0]):
        for j in range(ranked.shape[1]):
            num = <double>least(<double>nums[i, j], <double>ranked.shape[2])
            last = <int64_t>most(num - 1.0, 0.0)
            for q in range(2 * num_levels):
                at = least(most(num * mirrored[q] - 0.5, 0.0), <double>last)
                low = <Py_ssize_t>at
                below = <double>ranked[i, j, low]
                above = <double>ranked[i, j, low + 1 if low + 1 < last else last]
                both[q] = below + (at - <double>low) * (above - below) if num > 0.0 else 0.0
            skew_trust, trust = num / (num + skew_samples[j]), num / (num + half_trust[j])
            middle = 0.5 * (both[median] + both[num_levels + median])
            for q in range(num_levels):
                even = 0.5 * (both[q] + both[num_levels + q])
                at = 0.5 * (both[q] - both[num_levels + q]) + skew_trust * (even - middle)
                at = trust * at + (1.0 - trust) * (sizes[i, j] * pooled[i, j, q])
                shapes[i, j, q] = at if q == 0 else most(shapes[i, j, q - 1], at)


# --- what HAR reads

cdef double read_past(
    int64_t age, double log_variance, double shock, double *level, double *logs, double *shocks, Py_ssize_t month,
    Py_ssize_t week, double level_gain, double bound, double *x,
) noexcept nogil:
    """Takes a bar into a series' level and windows; the first six regressors x, and the level."""
    cdef Py_ssize_t k
    level[0] += most(1.0 / (<double>age + 1.0), level_gain) * (log_variance - level[0])
    push(logs, month, log_variance)
    push(shocks, month, shock)
    x[0] = 1.0
    x[1] = log_variance - level[0]
    x[2] = mean_of_last(logs, month, week) - level[0]
    x[3] = mean_of_last(logs, month, month) - level[0]
    x[4] = mean_of_last(shocks, month, week)
    x[5] = mean_of_last(shocks, month, month)
    for k in range(6):
        x[k] = clamp(x[k], bound)
    return level[0]


def read_har(
    const int64_t[::1] index, const int64_t[::1] ages, const double[::1] log_variance, const double[::1] returns,
    const double[::1] usual, double[::1] levels, double[:, ::1] logs, double[:, ::1] shocks, double[:, ::1] newest,
    const double[:, :, ::1] beta, const double[:, ::1] noise, const double[::1] root_h, double[:, ::1] scale,
    double[:, ::1] above, double[::1] terms, Py_ssize_t week, double level_gain, double bound,
):
    """`LogRangeHarExpert.update`. `terms` [K] is overwritten."""
    cdef Py_ssize_t i, j, row, month = logs.shape[1]
    cdef double level, coming
    for i in range(index.shape[0]):
        row = index[i]
        level = read_past(ages[i], log_variance[i], returns[i] / usual[i], &levels[row], &logs[row, 0], &shocks[row, 0],
                          month, week, level_gain, bound, &newest[row, 0])
        for j in range(root_h.shape[0]):
            coming = product(&newest[row, 0], &beta[row, j, 0], &terms[0], 6) + 0.5 * noise[row, j]
            coming = clamp(coming, bound)
            above[row, j] = 0.5 * coming
            coming = exact_exp(0.5 * (level + coming)) * root_h[j]
            scale[row, j] = coming if ages[i] >= month - 1 else NAN


def collect_targets(
    const int64_t[::1] index, const int64_t[::1] ages, const double[::1] variance, const int64_t[::1] horizons,
    double[:, ::1] past, double[:, ::1] levels, double[:, :, ::1] regressors, const double[::1] level,
    const double[:, ::1] newest, double[:, :, ::1] x, double[:, ::1] y, flag[:, ::1] known, Py_ssize_t min_bars,
    double bound,
):
    """What HAR in logs regresses at a bar: x [n, H, K] of h bars ago, y [n, H], and where they are `known` [n, H].

    Takes in the bar's variance, and keeps its level and its newest regressors.
    """
    cdef Py_ssize_t i, j, k, row, slot, longest = past.shape[1]
    cdef double mean
    for i in range(index.shape[0]):
        row = index[i]
        push(&past[row, 0], longest, variance[i])
        for j in range(horizons.shape[0]):
            slot = slot_before(ages[i], horizons[j], longest)
            mean = most(mean_of_last(&past[row, 0], longest, horizons[j]), 1e-300)
            y[i, j] = clamp(exact_log(mean) - levels[row, slot], bound)
            known[i, j] = ages[i] - horizons[j] >= min_bars - 1
            for k in range(regressors.shape[2]):
                x[i, j, k] = regressors[row, slot, k]
        slot = ages[i] % longest
        levels[row, slot] = level[row]
        for k in range(regressors.shape[2]):
            regressors[row, slot, k] = newest[row, k]


def read_own(
    const int64_t[::1] index, const int64_t[::1] ages, const double[::1] log_variance, const double[::1] within,
    const double[::1] returns, const double[::1] usual, const double[::1] volume, double[::1] levels,
    double[:, ::1] logs, double[:, ::1] shocks, double[:, ::1] louds, double[::1] volumes, double[::1] within_levels,
    double[:, ::1] withins, double[:, ::1] told, double[:, ::1] x, Py_ssize_t within_first, Py_ssize_t week,
    double level_gain, double volume_gain, double most_volume, double bound,
):
    """What `MarketHarExpert` reads of a series itself: `told` [N, 7], the first eight of x [n, K] and two of it from
    `within_first`."""
    cdef Py_ssize_t i, row, month = logs.shape[1], num_louds = louds.shape[1], num_withins = withins.shape[1]
    cdef double away, log_volume, known_usual, shock, level
    for i in range(index.shape[0]):
        row = index[i]
        away = 0.0
        if volume[i] > 0.0 and isfinite(volume[i]):
            log_volume = exact_log(volume[i])
            known_usual = log_volume if isnan(volumes[row]) else volumes[row]
            away = log_volume - known_usual
            volumes[row] = known_usual + most(1.0 / (<double>ages[i] + 1.0), volume_gain) * away
        shock = returns[i] / usual[i]
        read_past(ages[i], log_variance[i], shock, &levels[row], &logs[row, 0], &shocks[row, 0], month, week, level_gain,
                  bound, &x[i, 0])
        push(&louds[row, 0], num_louds, clamp(away, most_volume))
        x[i, 6] = clamp(louds[row, num_louds - 1], bound)
        x[i, 7] = clamp(mean_of_last(&louds[row, 0], num_louds, num_louds), bound)
        level = within_levels[row]
        level += most(1.0 / (<double>ages[i] + 1.0), level_gain) * (within[i] - level)
        within_levels[row] = level
        push(&withins[row, 0], num_withins, within[i])
        x[i, within_first] = clamp(within[i] - level, bound)
        x[i, within_first + 1] = clamp(mean_of_last(&withins[row, 0], num_withins, num_withins) - level, bound)
        told[row, 0], told[row, 1], told[row, 2] = x[i, 1], x[i, 2], x[i, 3]
        told[row, 3] = clamp(shock, bound)
        told[row, 4], told[row, 5], told[row, 6] = x[i, 4], x[i, 5], x[i, 6]


def read_market(
    const int64_t[::1] index, const int64_t[::1] ages, const int64_t[::1] of_bars, const int64_t[::1] ends_ns,
    const double[:, :] covariates, int64_t[::1] groups, int64_t[::1] is_grown, int64_t[::1] end_ns,
    const double[:, ::1] told, double[::1] loadings, double[::1] variances, double[:, ::1] x, double[:, ::1] above,
    double[::1] means, Py_ssize_t market, Py_ssize_t common, Py_ssize_t shock, Py_ssize_t min_series,
    Py_ssize_t min_bars, int64_t recent_ns, double gain, double least_variance, double bound,
):
    """`MarketHarExpert._read_market`, into columns of x [n, K] from `market` on, `common` and those beyond it; what is
    told above the market into above [n, F]. `shock` is its place in `told` [N, F]; `means` [F] is overwritten."""
    cdef Py_ssize_t i, row, k, group, num, num_told = told.shape[1]
    cdef double moved, total, move
    cdef int64_t after_ns
    cdef bint is_here
    for i in range(index.shape[0]):
        row = index[i]
        groups[row], end_ns[row], is_grown[row] = of_bars[i], ends_ns[i], ages[i] >= min_bars - 1
    for group in range(variances.shape[0]):
        is_here, after_ns = False, 0
        for i in range(index.shape[0]):
            if of_bars[i] == group and (not is_here or ends_ns[i] - recent_ns > after_ns):
                is_here, after_ns = True, ends_ns[i] - recent_ns
        if not is_here:
            continue
        num, moved, total = 0, 0.0, 0.0
        for k in range(num_told):
            means[k] = 0.0
        for row in range(groups.shape[0]):
            if groups[row] == group and is_grown[row] > 0 and end_ns[row] > after_ns:
                num += 1
                for k in range(num_told):
                    means[k] += told[row, k]
                moved += loadings[row] * told[row, shock]
                total += fabs(loadings[row])
        for k in range(num_told):
            means[k] = means[k] / num if num >= min_series else 0.0
        move = moved / most(total, least_variance)
        if num >= min_series:
            variances[group] += gain * (move * move - variances[group])
        for i in range(index.shape[0]):
            if of_bars[i] != group:
                continue
            row = index[i]
            for k in range(num_told):
                above[i, k] = told[row, k] - means[k]
            for k in range(num_told - 1):
                x[i, market + k] = means[k]
            if num < min_series:
                continue
            x[i, common] = fabs(move)
            if is_grown[row] > 0:
                loadings[row] += gain * (
                    told[row, shock] * move / most(variances[group], least_variance) - loadings[row]
                )
    for i in range(index.shape[0]):
        for k in range(covariates.shape[1]):
            x[i, common + 1 + k] = clamp(covariates[i, k], bound)


def read_recurrence(
    const int64_t[::1] index, const double[:, ::1] above, float[:, ::1] stood_out, int64_t[::1] since_bars,
    const int64_t[::1] quarters, double[:, ::1] x, Py_ssize_t first, Py_ssize_t near_bars, Py_ssize_t wide_bars,
    Py_ssize_t week, Py_ssize_t recent_bars, double event_size, double most_volume,
):
    """`QuarterlyRecurrence.features`, into five columns of x [n, K] from `first`."""
    cdef Py_ssize_t i, k, row, width = stood_out.shape[1], last, reach, place, start
    cdef double now, total
    cdef double days[64]
    cdef float largest
    for i in range(index.shape[0]):
        row = index[i]
        now = most(above[i, 0], 0.0) * least(most(above[i, above.shape[1] - 1], 0.0), most_volume)
        for k in range(width - 1):
            stood_out[row, k] = stood_out[row, k + 1]
        stood_out[row, width - 1] = <float>now
        since_bars[row] = 0 if now > event_size else since_bars[row] + 1
        x[i, first] = now
        for k in range(week):
            days[k] = <double>stood_out[row, width - week + k]
        x[i, first + 1] = sum_of(days, week) / week
        for place in range(2):
            reach, total = wide_bars if place else near_bars, 0.0
            for k in range(quarters.shape[0]):
                last = width - quarters[k]
                start = last - reach if last > reach else 0
                largest = stood_out[row, start]
                while start < last + reach:
                    start += 1
                    if stood_out[row, start] > largest or stood_out[row, start] != stood_out[row, start]:
                        largest = stood_out[row, start]
                total += largest
            x[i, first + 2 + place] = 0.0 if since_bars[row] < recent_bars else total
        x[i, first + 4] = 1.0 if since_bars[row] < recent_bars else 0.0


def scale_market(
    const int64_t[::1] index, const int64_t[::1] ages, const int64_t[::1] groups, const double[:, ::1] x,
    const double[:, :, ::1] beta, const double[:, ::1] squares, const double[:, ::1] num, const double[::1] levels,
    const double[::1] root_h, double[:, ::1] scale, double[:, ::1] above, double[::1] terms, Py_ssize_t min_bars,
    double bound,
):
    """The scales that `MarketHarExpert` forecasts from regressors x [n, K]. `terms` [K] is overwritten."""
    cdef Py_ssize_t i, j, row, group
    cdef double coming
    for i in range(index.shape[0]):
        row, group = index[i], groups[i]
        for j in range(root_h.shape[0]):
            coming = product(&x[i, 0], &beta[group, j, 0], &terms[0], x.shape[1])
            coming = clamp(coming + 0.5 * (squares[group, j] / num[group, j]), bound)
            above[row, j] = 0.5 * coming
            coming = exact_exp(0.5 * (levels[row] + coming)) * root_h[j]
            scale[row, j] = coming if ages[i] >= min_bars - 1 else NAN


# --- series that return to a level

def read_levels(
    const int64_t[::1] index, const int64_t[::1] ages, const double[::1] log_price, double[::1] levels,
    double[::1] distances, const int64_t[::1] does_return, const double[:, ::1] slope, double[:, ::1] coming,
    double level_gain, double bound,
):
    """`MeanReversion.update`."""
    cdef Py_ssize_t i, j, row
    for i in range(index.shape[0]):
        row = index[i]
        levels[row] += most(1.0 / (<double>ages[i] + 1.0), level_gain) * (log_price[i] - levels[row])
        distances[row] = clamp(levels[row] - log_price[i], bound)
        for j in range(slope.shape[1]):
            coming[row, j] = slope[row, j] * distances[row] if does_return[row] > 0 else 0.0


def add_drift(
    const int64_t[::1] ages, const int64_t[::1] groups, const double[::1] returns, const double[::1] usual,
    const double[::1] share, const int64_t[::1] horizons, double[::1] sums, double[::1] nums, double[::1] variances,
    double[:, ::1] coming, double year_mean, double year_deviation, double most_sharpe, double variance_gain,
    double min_variance,
):
    """`PooledDrift.update`; `share` [n] of a year that a bar holds."""
    cdef Py_ssize_t i, j, group
    cdef double moved, weights, weight, common, noise, prior, mean, bound
    for group in range(sums.shape[0]):
        moved = weights = 0.0
        for i in range(groups.shape[0]):
            if groups[i] == group and ages[i] > 0 and share[i] > 0.0 and usual[i] > 0.0:
                weight = 1.0 / usual[i]
                moved += weight * returns[i]
                weights += weight
        if weights > 0.0:
            common = moved / weights
            sums[group] += common
            nums[group] += 1.0
            variances[group] += most(1.0 / nums[group], variance_gain) * (common * common - variances[group])
    for i in range(groups.shape[0]):
        if not (share[i] > 0.0 and usual[i] > 0.0):
            continue
        group = groups[i]
        noise, prior = most(variances[group], min_variance), year_deviation * share[i]
        prior = prior * prior
        mean = (year_mean * share[i] * noise + sums[group] * prior) / (noise + nums[group] * prior)
        bound = most_sharpe * sqrt(share[i]) * usual[i]
        mean = clamp(mean, bound)
        for j in range(horizons.shape[0]):
            coming[i, j] += mean * <double>horizons[j]


def less_expected(
    const int64_t[::1] index, const int64_t[::1] ages, const int64_t[::1] horizons, const double[:, :, ::1] expected,
    const double[:, :] outcomes, double[:, ::1] less,
):
    """`ExpectedMoves.less_expected`, into less [n, H]; whether any move was expected."""
    cdef Py_ssize_t i, j
    cdef double move
    cdef bint is_any = False
    for i in range(index.shape[0]):
        for j in range(horizons.shape[0]):
            move = expected[index[i], slot_before(ages[i], horizons[j], expected.shape[1]), j]
            is_any = is_any or move != 0.0
            less[i, j] = outcomes[i, j] - move
    return is_any


def learn_levels(
    const int64_t[::1] index, const int64_t[::1] ages, const double[:, :] outcomes, const flag[::1] may_return,
    const int64_t[::1] horizons, double[:, ::1] distances, double[:, ::1] xx, double[:, ::1] xy,
    double[:, ::1] yy, double[:, ::1] bars, double[:, ::1] slope, const double[::1] distance, int64_t[::1] does_return, double keep_share, int64_t first_bars, int64_t min_bars,
    double significant, double refuted, double half_trust,
):
    """`MeanReversion.learn`."""
    cdef Py_ssize_t i, j, row, longest = distances.shape[1]
    cdef double x, y, keep, at, safe, noise, square, t
    cdef bint known
    for i in range(index.shape[0]):
        row, t = index[i], 0.0
        for j in range(horizons.shape[0]):
            x, y = distances[row, slot_before(ages[i], horizons[j], longest)], outcomes[i, j]
            known = isfinite(x) and isfinite(y) and ages[i] >= horizons[j] + first_bars
            x, y, keep = (x, y, keep_share) if known else (0.0, 0.0, 1.0)
            xx[row, j] = keep * xx[row, j] + x * x
            xy[row, j] = keep * xy[row, j] + x * y
            yy[row, j] = keep * yy[row, j] + y * y
            bars[row, j] = keep * bars[row, j] + (1.0 if known else 0.0)
            safe = most(xx[row, j], 1e-300)
            at = xy[row, j] / safe
            noise = most(yy[row, j] - at * xy[row, j], 1e-300) / most(bars[row, j], 1.0)
            square = at * at * safe / (noise * <double>horizons[j])  # t^2, one independent outcome in h bars
            slope[row, j] = at * (square / (square + half_trust)) if at > 0.0 else 0.0
            if j == 0 and at > 0.0:
                t = sqrt(square)
        t = 1.0 if t > (refuted if does_return[row] > 0 else significant) else 0.0
        does_return[row] = 1 if may_return[i] and ages[i] >= min_bars and t > 0.0 else 0
        distances[row, ages[i] % longest] = distance[row]


# --- weights

cdef inline double rate_of(double largest, double square, double pace, double log_k, double min_loss) noexcept nogil:
    return pace * least(0.5 / most(largest, min_loss), sqrt(log_k / most(square, min_loss)))


cdef void step(
    double *regret, double *square, double *largest, const double *loss, Py_ssize_t num, double keep, double pace,
    double log_k, double min_loss,
) noexcept nogil:
    """`CrpsAggregation._step` of so many weights side by side; none of the numbers is NaN."""
    cdef Py_ssize_t m
    cdef double far, sum_squares, scaled, peak, first, second, size
    for m in range(num):
        far, sum_squares, size = largest[m] * keep, square[m] * keep, fabs(loss[m])
        first = 0.5 / (far if far > min_loss else min_loss)
        second = sqrt(log_k / (sum_squares if sum_squares > min_loss else min_loss))
        scaled = pace * (first if first < second else second) * loss[m]
        peak = far if far > size else size
        regret[m] = regret[m] * keep + 0.5 * (loss[m] * (1.0 - scaled) - (2.0 * peak if scaled < -0.5 else 0.0))
        square[m] = sum_squares + loss[m] * loss[m]
        largest[m] = peak


def learn_weights(
    const int64_t[::1] index, const int64_t[:, :] regimes, const flag[:, :] known, const double[:, :] outcome,
    const double[:, :, :, ::1] waited, double[:, :, :, :, ::1] regret, double[:, :, :, :, ::1] square,
    double[:, :, :, :, ::1] largest, const double[::1] levels, const double[::1] cells, const double[:, ::1] shares,
    double[:, :, :, ::1] losses, double[::1] slope, double[::1] terms, const double[::1] paces,
    double keep_share, double log_k, double min_loss,
):
    """`CrpsAggregation.learn` of each series' own; fills losses [n, H, K, Z]. `slope` [Q], `terms` [2 Q] are
    overwritten. What is not known changes nothing."""
    cdef Py_ssize_t i, j, k, z, q, a, row, num_levels = levels.shape[0], num = losses.shape[2] * losses.shape[3]
    cdef double width, loss, y
    cdef double *gains = &terms[0] + num_levels
    for i in range(index.shape[0]):
        row = index[i]
        for j in range(known.shape[1]):
            if not known[i, j]:
                for k in range(losses.shape[2]):
                    for z in range(shares.shape[0]):
                        losses[i, j, k, z] = 0.0
                continue
            y = outcome[i, j]
            width = most(waited[i, 0, j, num_levels - 1] - waited[i, 0, j, 0], 1e-12)
            for q in range(num_levels):
                slope[q] = cells[q] * ((1.0 if y < waited[i, 0, j, q] else 0.0) - levels[q]) / width
            for k in range(losses.shape[2]):
                if isnan(waited[i, 1 + k, j, 0]):  # it forecast nothing
                    for z in range(shares.shape[0]):
                        losses[i, j, k, z] = 0.0
                    continue
                for q in range(num_levels):
                    gains[q] = slope[q] * (waited[i, 0, j, q] - waited[i, 1 + k, j, q])
                for z in range(shares.shape[0]):
                    for q in range(num_levels):
                        terms[q] = gains[q] * shares[z, q]
                    loss = sum_of(&terms[0], num_levels)
                    losses[i, j, k, z] = loss if isfinite(loss) else 0.0
            for a in range(2):
                q = 1 + regimes[i, j] if a else 0
                step(&regret[row, q, j, 0, 0], &square[row, q, j, 0, 0], &largest[row, q, j, 0, 0], &losses[i, j, 0, 0],
                     num, keep_share, paces[j], log_k, min_loss)


def pool_losses(
    Py_ssize_t group, int64_t end_ns, const int64_t[::1] groups, const int64_t[:, :] regimes,
    const flag[:, :] known, const double[:, :, :, ::1] losses, double[:, :, :, :, ::1] regret,
    double[:, :, :, :, ::1] square, double[:, :, :, :, ::1] largest, double[:, :, :, :, ::1] owed,
    double[:, :, ::1] owed_share, int64_t[::1] ends_ns, const double[::1] paces, double[::1] summed,
    double num_series, double half_life, double log_k, double min_loss,
):
    """`CrpsAggregation._pool` of one group. `summed` [K Z] is overwritten."""
    cdef Py_ssize_t i, j, a, m, num_awake = owed.shape[1], num = owed.shape[3] * owed.shape[4]
    cdef double keep, count
    cdef double *owed_here
    cdef const double *loss
    if end_ns > ends_ns[group]:
        for a in range(num_awake):
            for j in range(owed.shape[2]):
                keep = exact_exp(-LN2 / half_life * owed_share[group, a, j])
                owed_here = &owed[group, a, j, 0, 0]
                step(&regret[group, a, j, 0, 0], &square[group, a, j, 0, 0], &largest[group, a, j, 0, 0], owed_here, num,
                     keep, paces[j], log_k, min_loss)
                for m in range(num):
                    owed_here[m] = 0.0
                owed_share[group, a, j] = 0.0
        ends_ns[group] = end_ns
    for a in range(num_awake):
        for j in range(owed.shape[2]):
            count = 0.0
            for m in range(num):
                summed[m] = 0.0
            for i in range(groups.shape[0]):
                if groups[i] == group and known[i, j] and (a == 0 or regimes[i, j] == a - 1):
                    count += 1.0
                    loss = &losses[i, j, 0, 0]
                    for m in range(num):
                        summed[m] += loss[m]
            owed_share[group, a, j] += count / num_series
            if count == 0.0:
                continue  # nothing is added
            owed_here = &owed[group, a, j, 0, 0]
            for m in range(num):
                owed_here[m] += summed[m] / num_series


def fill_priors(
    const double[:, :, :, :, ::1] regret, const double[:, :, :, :, ::1] square, const double[:, :, :, :, ::1] largest,
    const double[:, :, ::1] starts, const double[::1] powers, double[:, :, :, :, ::1] priors, const double[::1] paces,
    double[:, ::1] scratch, double log_k, double min_loss, double min_prior,
):
    """`CrpsAggregation._priors`, into priors [P, R, H, K, Z]. `scratch` [5, 1 + R, K] is overwritten."""
    cdef Py_ssize_t g, r, j, k, z, num = priors.shape[3], num_awake = regret.shape[1]
    cdef double best, total
    cdef double *start = &scratch[0, 0]
    cdef double *rates = &scratch[1, 0]
    cdef double *scores = &scratch[2, 0]
    cdef double *both = &scratch[3, 0]
    for g in range(priors.shape[0]):
        if powers[g] < 0.0:
            continue  # no series is of this pool
        for j in range(priors.shape[2]):
            for k in range(num):
                start[k] = exact_exp((1.0 - powers[g]) * exact_log(starts[g % starts.shape[0], j, k]))
            if powers[g] == 0.0:  # the start stands by itself
                for r in range(num_awake - 1):
                    for k in range(num):
                        for z in range(priors.shape[4]):
                            priors[g, r, j, k, z] = start[k]
                continue
            for z in range(priors.shape[4]):
                for r in range(num_awake):
                    for k in range(num):
                        rates[r * num + k] = rate_of(
                            largest[g, r, j, k, z], square[g, r, j, k, z], paces[j], log_k, min_loss
                        )
                        scores[r * num + k] = rates[r * num + k] * regret[g, r, j, k, z]
                for r in range(num_awake - 1):
                    best, total = -INFINITY, 0.0
                    for k in range(num):
                        best = most(most(scores[k], scores[(1 + r) * num + k]), best)
                    for k in range(num):
                        both[k], both[num + k] = scores[k] - best, scores[(1 + r) * num + k] - best
                    exact_exps(both, 2 * num)
                    for k in range(num):
                        both[k] = starts[g % starts.shape[0], j, k] * (
                            rates[k] * both[k] + rates[(1 + r) * num + k] * both[num + k]
                        )
                        total += both[k]
                    for k in range(num):
                        both[k] = powers[g] * exact_log(most(both[k] / most(total, 1e-300), min_prior))
                    exact_exps(both, num)
                    for k in range(num):
                        priors[g, r, j, k, z] = start[k] * both[k]


def stack_on_grid(
    list quantiles, const double[:, :] ahead, const double[:, :] coming, const flag[:, :] idle,
    double[:, :, :, ::1] stacked, double largest, double ticks,
):
    """`fusion.stack_on_grid`."""
    cdef Py_ssize_t i, j, k, q, num_levels = stacked.shape[3]
    cdef const double[:, :, :] of_expert
    cdef double *to
    cdef double factor, move
    cdef bint has_ahead = ahead is not None, has_coming = coming is not None, has_idle = idle is not None, has_none
    for k in range(stacked.shape[1]):
        has_none = quantiles[k] is None
        if not has_none:
            of_expert = quantiles[k]
        for i in range(stacked.shape[0]):
            for j in range(stacked.shape[2]):
                to = &stacked[i, k, j, 0]
                if has_none or (has_idle and idle[i, k]):
                    for q in range(num_levels):
                        to[q] = NAN
                    continue
                for q in range(num_levels):
                    to[q] = of_expert[i, j, q]
                if has_ahead:
                    factor = ahead[i, j]
                    for q in range(num_levels):
                        to[q] = to[q] * factor
                for q in range(num_levels):
                    to[q] = nearest(clamp(to[q], largest) * ticks)
                if has_coming:
                    move = nearest(coming[i, j] * ticks)
                    for q in range(num_levels):
                        to[q] = clamp(to[q] + move, largest * ticks)
                for q in range(num_levels):
                    to[q] = to[q] / ticks + 0.0


def fill_matured(
    const flag[:, :, ::1] known, const int64_t[::1] index, const int64_t[::1] kinds, const flag[:, ::1] active,
    flag[:, ::1] matured,
):
    """`KindsOfSeries.are_known`, into matured [n, H]."""
    cdef Py_ssize_t i, j, k
    cdef int64_t kind
    for i in range(matured.shape[0]):
        kind = kinds[index[i]]
        for j in range(matured.shape[1]):
            matured[i, j] = known[i, 0, j]
            for k in range(active.shape[1]):
                if active[kind, k] and not known[i, 1 + k, j]:
                    matured[i, j] = 0


# --- calibration and scores

def learn_calibration(
    const int64_t[::1] index, const int64_t[::1] groups, const int64_t[:, :] regimes, const flag[:, :] known,
    const double[:, :] outcome, const double[:, :, :, ::1] waited, const double[::1] horizons,
    double[:, ::1] own, double[:, :, ::1] shared, double[:, :, ::1] bars, const double[::1] own_gains,
    const double[::1] num_series, double[:, ::1] surprises, Py_ssize_t low, Py_ssize_t high, double miss_rate,
    double shared_gain, double initial_step, double initial_spans, double half_trust, double bound,
):
    """`Calibration.learn`; `num_series` [G] is 0 for groups without a row. `surprises` [n, H] is overwritten."""
    cdef Py_ssize_t i, j, r, group
    cdef double y, total, count, gain, size
    for i in range(index.shape[0]):
        for j in range(horizons.shape[0]):
            y = outcome[i, j]
            surprises[i, j] = 0.0
            if known[i, j]:
                surprises[i, j] = (1.0 if y < waited[i, 0, j, low] or y > waited[i, 0, j, high] else 0.0) - miss_rate
            own[index[i], j] = clamp(own[index[i], j] + own_gains[j] * surprises[i, j], bound)
    for group in range(num_series.shape[0]):
        size = num_series[group]
        if size == 0.0:
            continue
        for r in range(shared.shape[1]):
            for j in range(horizons.shape[0]):
                total, count = 0.0, 0.0
                for i in range(index.shape[0]):
                    if groups[i] == group and regimes[i, j] == r:
                        total += surprises[i, j]
                        count += 1.0 if known[i, j] else 0.0
                gain = most(shared_gain, initial_step / (bars[group, r, j] / horizons[j] + initial_spans)) / horizons[j]
                gain *= size / (size + half_trust)
                shared[group, r, j] = clamp(shared[group, r, j] + gain * (total / size), bound)
                bars[group, r, j] += count / size


def fill_stretch(
    const int64_t[::1] index, const int64_t[::1] groups, const int64_t[::1] regimes, const double[:, ::1] own,
    const double[:, :, ::1] shared, double[:, ::1] stretch, double half_trust, double bound,
):
    """`Calibration.stretch`, into stretch [n, H]."""
    cdef Py_ssize_t i, j
    cdef double both, square
    for i in range(index.shape[0]):
        for j in range(stretch.shape[1]):
            both = own[index[i], j] + shared[groups[i], regimes[i], j]
            square = both * both
            both = both * (square / (square + half_trust * half_trust))
            stretch[i, j] = exact_exp(clamp(both, bound))


def revert_bands(
    const int64_t[::1] index, const double[:, :, :, ::1] experts, const double[:, :] ahead, double[::1] levels,
    double[::1] nums, const double[::1] below, const double[::1] above, double[:, ::1] stretch, Py_ssize_t low,
    Py_ssize_t high, double sigma_floor, double level_bars, double max_away,
):
    """`BandReversion.apply`: changes stretch [n, H], and the levels and numbers of bars [N]."""
    cdef Py_ssize_t i, j, k, row, last = experts.shape[2] - 1, num_ready
    cdef double total, width, away, known
    cdef bint has_ahead = ahead is not None
    for i in range(index.shape[0]):
        row, total, num_ready = index[i], 0.0, 0
        for k in range(experts.shape[1]):
            width = experts[i, k, last, high] - experts[i, k, last, low]
            if isfinite(width):
                total += width
                num_ready += 1
        if num_ready == 0:
            continue
        width = total / num_ready
        if has_ahead:
            width = width / ahead[i, last]
        width = exact_log(most(width, sigma_floor))
        known = least(nums[row] + 1.0, level_bars)
        nums[row] = known
        levels[row] = levels[row] + (width - levels[row]) / known
        away = clamp(width - levels[row], max_away)
        for j in range(stretch.shape[1]):
            stretch[i, j] *= exact_exp(-((below[j] if away < 0.0 else above[j]) * away))


def add_scores(
    const double[:, :, :, ::1] quantiles, const double[:, :] outcome, const flag[:, :] matured,
    const double[::1] levels, const double[::1] cells, double[::1] terms, double[:, ::1] crps,
    int64_t[:, ::1] inside, int64_t[:, ::1] num, Py_ssize_t low, Py_ssize_t high,
):
    """`Scoreboard.add`. `terms` [Q] is overwritten."""
    cdef Py_ssize_t i, j, k, q, num_levels = levels.shape[0]
    cdef double total, error
    cdef int64_t count, scored
    for j in range(outcome.shape[1]):
        for k in range(quantiles.shape[1]):
            total, count, scored = 0.0, 0, 0
            for i in range(outcome.shape[0]):
                if not matured[i, j] or not isfinite(quantiles[i, k, j, 0]):
                    continue
                for q in range(num_levels):
                    error = outcome[i, j] - quantiles[i, k, j, q]
                    terms[q] = (0.5 * fabs(error) + error * (levels[q] - 0.5)) * cells[q]
                total += sum_of(&terms[0], num_levels)
                count += quantiles[i, k, j, low] <= outcome[i, j] <= quantiles[i, k, j, high]
                scored += 1
            crps[k, j] += total
            inside[k, j] += count
            num[k, j] += scored


cdef double beyond(double distance, double width, double score, double slope, double curve, double span) noexcept nogil:
    """The normal score at a distance beyond the outermost quantile (`_inverse`), not yet held at the largest."""
    cdef double ratio = least(most(distance, 0.0) / most(span * width, 1e-300), 1e6)
    return score + (sqrt(slope * slope + 4.0 * curve * ratio) - slope) / (2.0 * curve)


def fill_normal_scores(
    const double[:, :] quantiles, const double[:] outcome, const double[::1] level_scores,
    const double[::1] lower, const double[::1] upper, double[::1] scores, double most_score,
):
    """`MarginalMap.scores`, into scores [n]. `lower` and `upper` are score, slope, curve and span of the tails."""
    cdef Py_ssize_t i, q, below, upto, left, right, num = quantiles.shape[1], last = num - 1
    cdef double y, low, high, share, far
    for i in range(outcome.shape[0]):
        y = outcome[i]
        below, upto = 0, 0
        for q in range(num):
            below += quantiles[i, q] < y
            upto += quantiles[i, q] <= y
        left, right = (below, upto - 1) if upto > below else (below - 1, upto)
        left, right = max(min(left, last), 0), min(right, last)
        low, high = quantiles[i, left], quantiles[i, right]
        share = (y - low) / (high - low) if high > low else 0.5
        scores[i] = level_scores[left] + share * (level_scores[right] - level_scores[left])
        if upto == 0:
            far = beyond(quantiles[i, 0] - y, quantiles[i, 1] - quantiles[i, 0], lower[0], lower[1], lower[2], lower[3])
            scores[i] = -least(far, most_score)
        if below == last + 1:
            far = beyond(
                y - quantiles[i, last], quantiles[i, last] - quantiles[i, last - 1], upper[0], upper[1], upper[2], upper[3]
            )
            scores[i] = least(far, most_score)
        if not (isfinite(y) and isfinite(quantiles[i, 0])):
            scores[i] = NAN
