/* Tiles of numbers, loaded and stored. */
#include "lib/layout.h"

#include <string.h>

/* STAGED: numbers that pass through an array on the stack. */
enum { STAGED = 256 };

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* ---- Numbers along axes. A visit handles n of them, `stride` apart from `offset` on. */

struct visit {
    const struct kl_kernel *kernel;
    enum kl_array array;
    enum kl_dtype dtype;
    const void *from;
    void *to;
    void (*run)(const struct visit *visit, size_t offset, size_t stride, size_t n, double *v);
};

/* n elements of `size` bytes, from and to places that are so many elements apart. */
static void copy(const char *from, size_t from_stride, char *to, size_t to_stride, size_t size,
                 size_t n)
{
    switch (size) {
    case 2:
        for (size_t i = 0; i < n; i++)
            memcpy(to + i * to_stride * 2, from + i * from_stride * 2, 2);
        break;
    case 4:
        for (size_t i = 0; i < n; i++)
            memcpy(to + i * to_stride * 4, from + i * from_stride * 4, 4);
        break;
    default:
        for (size_t i = 0; i < n; i++)
            memcpy(to + i * to_stride * 8, from + i * from_stride * 8, 8);
    }
}

static void load_run(const struct visit *visit, size_t offset, size_t stride, size_t n, double *v)
{
    size_t size = kl_dtype_size(visit->dtype);
    const char *from = (const char *)visit->from + offset * size;
    char block[STAGED * sizeof(double)];
    if (stride == 1) {
        visit->kernel->widen[visit->dtype](from, v, n);
        return;
    }
    if (stride == 0) {
        double value = kl_load(visit->dtype, from, 0);
        for (size_t i = 0; i < n; i++)
            v[i] = value;
        return;
    }
    for (size_t i = 0; i < n; i += STAGED) {
        size_t length = least(STAGED, n - i);
        copy(from + i * stride * size, stride, block, 1, size, length);
        visit->kernel->widen[visit->dtype](block, v + i, length);
    }
}

static void load_bytes(const struct visit *visit, size_t offset, size_t stride, size_t n, double *v)
{
    const unsigned char *from = (const unsigned char *)visit->from + offset;
    if (stride == 1) {
        visit->kernel->widen_bytes(from, v, n);
        return;
    }
    for (size_t i = 0; i < n; i++)
        v[i] = from[i * stride] != 0;
}

static void store_run(const struct visit *visit, size_t offset, size_t stride, size_t n, double *v)
{
    size_t size = kl_dtype_size(visit->dtype);
    char *to = (char *)visit->to + offset * size, block[STAGED * sizeof(double)];
    if (stride == 1) {
        visit->kernel->narrow[visit->dtype](v, to, n);
        return;
    }
    for (size_t i = 0; i < n; i += STAGED) {
        size_t length = least(STAGED, n - i);
        visit->kernel->narrow[visit->dtype](v + i, block, length);
        copy(block, 1, to + i * stride * size, stride, size, length);
    }
}

static void add_run(const struct visit *visit, size_t offset, size_t stride, size_t n, double *v)
{
    struct kl_sum *to = (struct kl_sum *)visit->to + offset;
    for (size_t i = 0; i < n; i++)
        kl_sum_add(&to[i * stride], v[i]);
}

/* Entries [start, start + n) of axes, counted in row-major order, like an odometer whose last wheel
 * is taken in runs. */
static void visit_line(const struct visit *visit, const struct kl_axes *axes, size_t base,
                       size_t start, size_t n, double *v)
{
    size_t index[KL_MAX_DIMS], last = axes->n - 1;
    if (axes->n == 0) {
        visit->run(visit, base, 0, n, v);
        return;
    }
    for (size_t i = axes->n; i-- > 0; start /= axes->axis[i].size) {
        index[i] = start % axes->axis[i].size;
        base += index[i] * axes->axis[i].strides[visit->array];
    }
    for (;;) {
        size_t left = axes->axis[last].size - index[last], run = n < left ? n : left;
        size_t stride = axes->axis[last].strides[visit->array];
        visit->run(visit, base, stride, run, v);
        v += run;
        n -= run;
        if (n == 0)
            return;
        base -= index[last] * stride;
        index[last] = 0;
        for (size_t i = last; i-- > 0;) {
            const struct kl_axis *axis = &axes->axis[i];
            base += axis->strides[visit->array];
            if (++index[i] < axis->size)
                break;
            base -= axis->size * axis->strides[visit->array];
            index[i] = 0;
        }
    }
}

static void visit_tile(const struct visit *visit, const struct kl_layout *layout,
                       const struct kl_tile *tile, double *v)
{
    if (tile->pitch == 1) {
        size_t base = kl_offset(&layout->across, visit->array, tile->row);
        visit_line(visit, &layout->along, base, tile->start, tile->length, v);
        return;
    }
    for (size_t i = 0; i < tile->length; i++)
        visit_line(visit, &layout->across, kl_offset(&layout->along, visit->array, tile->start + i),
                   tile->row, tile->rows, v + i * tile->pitch);
}

/* ---- Patterns: a tile's numbers in the order in which they lie in memory, in runs that are longer
 * than those along rows or across them. */

/* digit: some entries of an axis, with their strides in memory and in a tile. */
struct digit {
    size_t extent, stride, step;
};

/* The first n entries of axes as those of whole inner axes and some of one more; false if they are
 * none. */
static bool find_digits(const struct kl_axes *axes, enum kl_array array, size_t n, size_t step,
                        struct digit *digits, size_t *n_digits)
{
    for (size_t i = axes->n; i-- > 0 && n > 1;) {
        size_t extent = n < axes->axis[i].size ? n : axes->axis[i].size;
        if (n % extent != 0 || *n_digits == KL_PATTERN_DIGITS)
            return false;
        digits[(*n_digits)++] = (struct digit){extent, axes->axis[i].strides[array], step};
        step *= extent;
        n /= extent;
    }
    return true;
}

/* Largest strides first. False if two of them reach over each other. */
static bool sort_digits(struct digit *digits, size_t n)
{
    for (size_t i = 1; i < n; i++)
        for (size_t j = i; j > 0 && digits[j].stride > digits[j - 1].stride; j--) {
            struct digit larger = digits[j];
            digits[j] = digits[j - 1];
            digits[j - 1] = larger;
        }
    for (size_t i = 0; i < n; i++)
        if (digits[i].stride < (i + 1 < n ? digits[i + 1].stride * digits[i + 1].extent : 1))
            return false;
    return true;
}

static void enumerate(struct kl_pattern *pattern, const struct digit *digits, size_t n_digits,
                      size_t n)
{
    size_t index[KL_PATTERN_DIGITS] = {0}, offset = 0, to = 0;
    pattern->n_runs = 0;
    for (size_t i = 0; i < n; i++) {
        struct kl_run *run = &pattern->runs[pattern->n_runs];
        if (i > 0 && run[-1].offset + run[-1].n == offset)
            run[-1].n++;
        else
            *run = (struct kl_run){(uint32_t)offset, 1}, pattern->n_runs++;
        pattern->to[i] = (uint16_t)to;
        for (size_t d = n_digits; d-- > 0;) {
            offset += digits[d].stride;
            to += digits[d].step;
            if (++index[d] < digits[d].extent)
                break;
            offset -= digits[d].stride * digits[d].extent;
            to -= digits[d].step * digits[d].extent;
            index[d] = 0;
        }
    }
}

/* The numbers that a visit to the tile finds side by side. */
static size_t line_run(const struct kl_layout *layout, const struct kl_tile *tile,
                       enum kl_array array)
{
    const struct kl_axes *across = &layout->across;
    if (across->n == 0 || across->axis[across->n - 1].strides[array] != 1)
        return 1;
    size_t size = across->axis[across->n - 1].size;
    return size < tile->rows ? size : tile->rows;
}

static void find_pattern(struct kl_pattern *pattern, const struct kl_layout *layout,
                         const struct kl_tile *tile, enum kl_array array)
{
    struct digit digits[KL_PATTERN_DIGITS];
    size_t n_digits = 0, n = tile->rows * tile->length;
    pattern->rows = 0;
    if (tile->pitch == 1 || tile->length > layout->along.volume ||
        !find_digits(&layout->across, array, tile->rows, 1, digits, &n_digits) ||
        !find_digits(&layout->along, array, tile->length, tile->pitch, digits, &n_digits) ||
        !sort_digits(digits, n_digits))
        return;
    pattern->last_row = kl_offset(&layout->across, array, tile->rows - 1);
    pattern->last_element = kl_offset(&layout->along, array, tile->length - 1);
    if (pattern->last_row > UINT32_MAX / 2 || pattern->last_element > UINT32_MAX / 2)
        return;
    enumerate(pattern, digits, n_digits, n);
    if (pattern->n_runs == 0 || n / pattern->n_runs < 2 * line_run(layout, tile, array))
        return;
    pattern->rows = tile->rows;
    pattern->length = tile->length;
}

void kl_find_patterns(struct kl_patterns *patterns, struct kl_layout *layout,
                      const struct kl_tile *tile)
{
    if (tile->pitch == 1)
        return;
    for (int i = KL_OF_INPUT; i <= KL_OF_LOSS; i++)
        find_pattern(&patterns->of[i], layout, tile, (enum kl_array)i);
    layout->patterns = patterns;
}

static const struct kl_pattern *pattern_of(const struct kl_layout *layout, enum kl_array array)
{
    return layout->patterns && array <= KL_OF_LOSS ? &layout->patterns->of[array] : NULL;
}

/* Finds where a tile begins in memory, if it follows the pattern. */
static bool follows(const struct kl_layout *layout, const struct kl_tile *tile, enum kl_array array,
                    const struct kl_pattern *pattern, size_t *begin)
{
    if (!pattern || tile->rows != pattern->rows || tile->length != pattern->length)
        return false;
    size_t row = kl_offset(&layout->across, array, tile->row);
    size_t element = kl_offset(&layout->along, array, tile->start);
    *begin = row + element;
    return kl_offset(&layout->across, array, tile->row + tile->rows - 1) - row ==
               pattern->last_row &&
           kl_offset(&layout->along, array, tile->start + tile->length - 1) - element ==
               pattern->last_element;
}

/* ---- Tiles */

void kl_tile_load(const struct kl_kernel *kernel, const struct kl_layout *layout,
                  const struct kl_tile *tile, const struct kl_numbers *from, double *to)
{
    const struct visit visit = {.kernel = kernel,
                                .array = from->array,
                                .dtype = from->dtype,
                                .from = from->data,
                                .run = from->bytes ? load_bytes : load_run};
    const struct kl_pattern *pattern = pattern_of(layout, from->array);
    double block[STAGED];
    size_t begin;
    for (size_t i = 0; tile->pitch > tile->rows && i < tile->length; i++)
        for (size_t row = tile->rows; row < tile->pitch; row++)
            to[i * tile->pitch + row] = from->padding;
    if (!follows(layout, tile, from->array, pattern, &begin)) {
        visit_tile(&visit, layout, tile, to);
        return;
    }
    const uint16_t *place = pattern->to;
    for (const struct kl_run *run = pattern->runs; run < pattern->runs + pattern->n_runs; run++)
        for (size_t done = 0, n; done < run->n; done += n) {
            n = least(STAGED, run->n - done);
            visit.run(&visit, begin + run->offset + done, 1, n, block);
            for (size_t i = 0; i < n; i++)
                to[*place++] = block[i];
        }
}

void kl_tile_store(const struct kl_kernel *kernel, const struct kl_layout *layout,
                   const struct kl_tile *tile, enum kl_array array, enum kl_dtype dtype, void *to,
                   const double *from)
{
    const struct visit visit = {
        .kernel = kernel, .array = array, .dtype = dtype, .to = to, .run = store_run};
    const struct kl_pattern *pattern = pattern_of(layout, array);
    double block[STAGED];
    size_t begin;
    if (!follows(layout, tile, array, pattern, &begin)) {
        visit_tile(&visit, layout, tile, (double *)from);
        return;
    }
    const uint16_t *place = pattern->to;
    for (const struct kl_run *run = pattern->runs; run < pattern->runs + pattern->n_runs; run++)
        for (size_t done = 0, n; done < run->n; done += n) {
            n = least(STAGED, run->n - done);
            for (size_t i = 0; i < n; i++)
                block[i] = from[*place++];
            visit.run(&visit, begin + run->offset + done, 1, n, block);
        }
}

void kl_tile_add(const struct kl_layout *layout, const struct kl_tile *tile, enum kl_array array,
                 struct kl_sum *to, const double *from)
{
    const struct visit visit = {.array = array, .to = to, .run = add_run};
    visit_tile(&visit, layout, tile, (double *)from);
}

void kl_line_load(const struct kl_kernel *kernel, const struct kl_axes *axes,
                  const struct kl_numbers *from, size_t start, size_t n, double *to)
{
    const struct visit visit = {.kernel = kernel,
                                .array = from->array,
                                .dtype = from->dtype,
                                .from = from->data,
                                .run = from->bytes ? load_bytes : load_run};
    visit_line(&visit, axes, 0, start, n, to);
}

void kl_line_store(const struct kl_kernel *kernel, const struct kl_axes *axes, enum kl_array array,
                   enum kl_dtype dtype, void *to, size_t start, size_t n, const double *from)
{
    const struct visit visit = {
        .kernel = kernel, .array = array, .dtype = dtype, .to = to, .run = store_run};
    visit_line(&visit, axes, 0, start, n, (double *)from);
}
