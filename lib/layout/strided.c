/* A range of entries of axes is at most two boxes an axis: of whole entries of an axis, with all axes below it. Boxes
 * of rows times boxes of their elements are the nests of loops of a tile. Dimensions that continue one another in both
 * the array and the block are merged, and those left are ordered such that the longest ones are innermost: an axis
 * of two or three entries costs no loop of its own. */
#include "lib/layout/strided.h"

#include <string.h>

/* ---- Copies of two dimensions */

/* view_2d: rows of elements, and how far apart rows and elements lie. */
struct view_2d {
    char *at;
    size_t row, element;
};

static inline __attribute__((always_inline)) void
copy_elements(struct view_2d from, struct view_2d to, size_t rows, size_t n, size_t size)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t i = 0; i < n; i++)
            memcpy(to.at + (r * to.row + i * to.element) * size,
                   from.at + (r * from.row + i * from.element) * size, size);
}

/* MAX_LOOPED: elements that take less time one by one than by memcpy. */
enum { MAX_LOOPED = 4 };

/* FIRST_FILLED: elements of a filled row from which it is copied, twice as many at a time. */
enum { FIRST_FILLED = 32 };

static inline __attribute__((always_inline)) void
fill_elements(struct view_2d from, struct view_2d to, size_t rows, size_t n, size_t size)
{
    char element[sizeof(double)];
    for (size_t r = 0; r < rows; r++) {
        char *at = to.at + r * to.row * size;
        memcpy(element, from.at + r * from.row * size, size);
        for (size_t i = 0; i < kl_min(n, FIRST_FILLED); i++)
            memcpy(at + i * size, element, size);
        for (size_t done = FIRST_FILLED; done < n; done *= 2)
            memcpy(at + done * size, at, kl_min(done, n - done) * size);
    }
}

/* Copies `rows` rows of n elements, or fills each row with its one element. */
static inline __attribute__((always_inline)) void
copy_sized(bool fills, struct view_2d from, struct view_2d to, size_t rows, size_t n, size_t size)
{
    if (fills)
        fill_elements(from, to, rows, n, size);
    else
        copy_elements(from, to, rows, n, size);
}

/* Copies `rows` rows of n elements of `size` bytes. */
static void copy_view(struct view_2d from, struct view_2d to, size_t rows, size_t n, size_t size)
{
    bool fills = from.element == 0 && to.element == 1;
    if (from.element == 1 && to.element == 1 && n > MAX_LOOPED)
        for (size_t r = 0; r < rows; r++)
            memcpy(to.at + r * to.row * size, from.at + r * from.row * size, n * size);
    else if (size == 1)
        copy_sized(fills, from, to, rows, n, 1);
    else if (size == 2)
        copy_sized(fills, from, to, rows, n, 2);
    else if (size == 4)
        copy_sized(fills, from, to, rows, n, 4);
    else
        copy_sized(fills, from, to, rows, n, 8);
}

static struct view_2d in_array(const struct kl_strided_copy *copy, size_t at,
                               const struct kl_dim dims[2])
{
    return (struct view_2d){copy->array_data + at * copy->size, dims[0].array, dims[1].array};
}

static struct view_2d in_block(const struct kl_strided_copy *copy, size_t at,
                               const struct kl_dim dims[2])
{
    return (struct view_2d){copy->block + at * copy->size, dims[0].block, dims[1].block};
}

void kl_run_gather(const struct kl_strided_copy *copy, size_t array, size_t block,
                   const struct kl_dim dims[2])
{
    copy_view(in_array(copy, array, dims), in_block(copy, block, dims), dims[0].n, dims[1].n,
              copy->size);
}

void kl_run_scatter(const struct kl_strided_copy *copy, size_t array, size_t block,
                    const struct kl_dim dims[2])
{
    copy_view(in_block(copy, block, dims), in_array(copy, array, dims), dims[0].n, dims[1].n,
              copy->size);
}

/* MAX_ADDED, MAX_ADDED_APART: elements that take less time one by one than by a kernel's function, which makes a two-sum
 * of each lane: of one sum, and of as many. */
enum { MAX_ADDED = 8, MAX_ADDED_APART = 3 };

static void add_sum(double *high, double *low, struct kl_sum more)
{
    struct kl_sum sum = {*high, *low};
    kl_sum_add(&sum, more.high);
    *high = sum.high, *low = sum.low + more.low;
}

/* Adds n elements `step` apart to one sum. */
static void add_to_one(double *high, double *low, const double *v, size_t n, size_t step)
{
    struct kl_sum sum = {*high, *low};
    for (size_t i = 0; i < n; i++)
        kl_sum_add(&sum, v[i * step]);
    *high = sum.high, *low = sum.low;
}

void kl_run_add(const struct kl_strided_copy *copy, size_t array, size_t block,
                const struct kl_dim dims[2])
{
    const double *v = (const double *)(const void *)copy->block + block;
    size_t n = dims[1].n, stride = dims[1].array, step = dims[1].block;
    for (size_t row = 0; row < dims[0].n; row++, v += dims[0].block, array += dims[0].array) {
        double *high = copy->high + array, *low = copy->low + array;
        if (stride == 0 && (step != 1 || n <= MAX_ADDED))
            add_to_one(high, low, v, n, step);
        else if (stride == 0)
            add_sum(high, low, copy->kernel->total(v, n));
        else if (stride == 1 && step == 1 && n > MAX_ADDED_APART)
            copy->kernel->add(v, 1, high, low, n);
        else
            for (size_t i = 0; i < n; i++)
                add_sum(high + i * stride, low + i * stride, (struct kl_sum){v[i * step], 0});
    }
}

/* ---- Boxes */

/* strides: axes as one array has them, outermost first; axes that continue one another are merged. */
struct strides {
    struct {
        size_t size, stride;
    } axis[KL_MAX_DIMS];
    size_t n;
};

static void find_strides(struct strides *s, const struct kl_axes *axes, enum kl_array array)
{
    s->n = 0;
    for (size_t i = 0; i < axes->n; i++) {
        size_t size = axes->axis[i].size, stride = axes->axis[i].strides[array];
        bool continues = s->n > 0 && s->axis[s->n - 1].stride == size * stride;
        if (continues)
            size *= s->axis[--s->n].size;
        s->axis[s->n].size = size;
        s->axis[s->n++].stride = stride;
    }
}

/* part: `count` entries of axis `level`, each with all `volume` entries of the axes below it. */
struct part {
    size_t offset, level, count, volume;
};

/* The largest part that begins with entry `at` and has at most `left` entries. */
static struct part part_at(const struct strides *s, size_t at, size_t left)
{
    struct part part = {.count = 1, .volume = 1};
    size_t volume = 1;
    bool whole = true;
    for (size_t i = s->n; i-- > 0; at /= s->axis[i].size) {
        size_t size = s->axis[i].size, index = at % size;
        part.offset += index * s->axis[i].stride;
        if (!whole)
            continue;
        part.level = i, part.volume = volume, part.count = kl_min(size - index, left / volume);
        whole = part.count == size;
        volume *= size;
    }
    return part;
}

/* box: nested dimensions, outermost first. */
struct box {
    struct kl_dim dims[2 * KL_MAX_DIMS];
    size_t n;
};

static void push(struct box *box, struct kl_dim dim)
{
    if (dim.n == 1)
        return;
    if (box->n > 0) {
        const struct kl_dim *last = &box->dims[box->n - 1];
        bool continues = last->array == dim.n * dim.array && last->block == dim.n * dim.block;
        dim.n *= continues ? last->n : 1;
        box->n -= continues;
    }
    box->dims[box->n++] = dim;
}

/* Adds the dimensions of a part whose entries lie `step` elements apart in the block. */
static void push_part(struct box *box, const struct strides *s, const struct part *part,
                      size_t step)
{
    size_t volume = part->volume;
    if (s->n == 0)
        return;
    push(box, (struct kl_dim){part->count, s->axis[part->level].stride, step * volume});
    for (size_t i = part->level + 1; i < s->n; i++) {
        volume /= s->axis[i].size;
        push(box, (struct kl_dim){s->axis[i].size, s->axis[i].stride, step * volume});
    }
}

/* MIN_CONTIGUOUS: entries from which a dimension that is contiguous in the block, and in the array contiguous or
 * broadcast, is the innermost one, whatever others are longer. */
enum { MIN_CONTIGUOUS = 8 };

static size_t merit(const struct kl_dim *dim)
{
    bool contiguous = dim->block == 1 && dim->array <= 1 && dim->n >= MIN_CONTIGUOUS;
    return contiguous ? (size_t)-1 : dim->n;
}

/* Moves the two best dimensions innermost. Sums keep their order. */
static void sort(struct box *box)
{
    for (size_t last = box->n; last + 2 > box->n && last-- > 1;) {
        size_t best = last;
        for (size_t i = 0; i < last; i++)
            if (merit(&box->dims[i]) > merit(&box->dims[best]))
                best = i;
        struct kl_dim dim = box->dims[best];
        box->dims[best] = box->dims[last];
        box->dims[last] = dim;
    }
}

/* Runs all pairs of innermost dimensions. */
static void run_box(const struct kl_strided_copy *copy, struct box *box, size_t array, size_t block)
{
    const struct kl_dim one = {1, 0, 0};
    size_t index[2 * KL_MAX_DIMS], outer = box->n > 2 ? box->n - 2 : 0;
    const struct kl_dim inner[2] = {box->n > 1 ? box->dims[box->n - 2] : one,
                                    box->n > 0 ? box->dims[box->n - 1] : (struct kl_dim){1, 1, 1}};
    memset(index, 0, outer * sizeof *index);
    for (;;) {
        copy->run(copy, array, block, inner);
        size_t i = outer;
        for (; i > 0 && ++index[i - 1] == box->dims[i - 1].n; i--) {
            index[i - 1] = 0;
            array -= (box->dims[i - 1].n - 1) * box->dims[i - 1].array;
            block -= (box->dims[i - 1].n - 1) * box->dims[i - 1].block;
        }
        if (i == 0)
            return;
        array += box->dims[i - 1].array;
        block += box->dims[i - 1].block;
    }
}

void kl_copy_entries(const struct kl_strided_copy *copy, const struct kl_entries *outer,
                     const struct kl_entries *inner)
{
    struct strides across, along;
    struct box box;
    find_strides(&across, outer->axes, copy->array);
    find_strides(&along, inner->axes, copy->array);
    for (size_t i = 0, rows; i < outer->n; i += rows) {
        struct part of_rows = part_at(&across, outer->start + i, outer->n - i);
        rows = of_rows.count * of_rows.volume;
        for (size_t j = 0, n; j < inner->n; j += n) {
            struct part part = part_at(&along, inner->start + j, inner->n - j);
            n = part.count * part.volume;
            box.n = 0;
            push_part(&box, &across, &of_rows, outer->step);
            push_part(&box, &along, &part, inner->step);
            if (!copy->high)
                sort(&box);
            run_box(copy, &box, of_rows.offset + part.offset, i * outer->step + j * inner->step);
        }
    }
}
