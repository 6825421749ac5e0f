/* The memory budget: large blocks are kept, and freed if the limit demands it. */
#include "api/memory/budget.h"
#include "tests/suites/support/support.h"

#include <criterion/criterion.h>
#include <string.h>

enum { MIB = 1 << 20 };

static size_t used(struct api_budget *budget) { return atomic_load(&budget->used); }

static size_t idle(struct api_budget *budget) { return atomic_load(&budget->idle); }

Test(budget, large_blocks_are_kept_and_used_again)
{
    struct api_budget budget = {0};
    size_t size = 10 * MIB, smaller = 9 * MIB, other = 100 * MIB;
    char *first = api_block_resize(&budget, NULL, 0, &size);
    cr_assert(first);
    cr_expect_eq(used(&budget), size);
    memset(first, 1, size);
    api_block_free(&budget, first, size);
    cr_expect_eq(used(&budget), 0);
    cr_expect_eq(idle(&budget), size);

    char *unlike = api_block_resize(&budget, NULL, 0, &other);
    cr_expect_neq(unlike, first);
    char *again = api_block_resize(&budget, NULL, 0, &smaller);
    cr_expect_eq(again, first);
    cr_expect_eq(smaller, size, "it has what the block has");
    cr_expect_eq(idle(&budget), 0);
    api_block_free(&budget, again, smaller);
    api_block_free(&budget, unlike, other);
    cr_expect_eq(idle(&budget), size + other);
    api_budget_trim(&budget, INT64_C(3600000000000));
    cr_expect_eq(idle(&budget), size + other, "not yet");
    api_budget_trim(&budget, 0);
    cr_expect_eq(idle(&budget), 0);
}

Test(budget, kept_blocks_make_room)
{
    struct api_budget budget = {.limit = 20 * MIB};
    size_t size = 12 * MIB, large = 16 * MIB, too_large = 5 * MIB;
    api_block_free(&budget, api_block_resize(&budget, NULL, 0, &size), size);
    cr_expect_eq(idle(&budget), size);
    void *block = api_block_resize(&budget, NULL, 0, &large);
    cr_expect(block);
    cr_expect_eq(idle(&budget), 0);
    cr_expect_null(api_block_resize(&budget, NULL, 0, &too_large));
    cr_expect_eq(used(&budget), large);
    api_block_free(&budget, block, large);
    api_budget_trim(&budget, 0);
}

Test(budget, contents_stay_through_every_size)
{
    struct api_budget budget = {0};
    size_t have = 1;
    unsigned char *block = api_block_resize(&budget, NULL, 0, &have);
    cr_assert(block);
    block[0] = 0;
    static const size_t sizes[] = {2,        1000,     256 << 10, 300 << 10, 3 * MIB, 5 * MIB,
                                   40 * MIB, 50 * MIB, 6 * MIB,   2 * MIB,   1000,    10};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        size_t size = sizes[i], kept = have < size ? have : size;
        block = api_block_resize(&budget, block, have, &size);
        cr_assert(block);
        cr_expect_geq(size, sizes[i]);
        cr_expect_eq(used(&budget), size);
        for (size_t j = 0; j < kept; j++)
            if (block[j] != j % 251)
                cr_assert(false, "byte %zu after %zu bytes became %zu", j, have, size);
        have = size;
        for (size_t j = 0; j < have; j++)
            block[j] = (unsigned char)(j % 251);
    }
    api_block_free(&budget, block, have);
    cr_expect_eq(used(&budget), 0);
    api_budget_trim(&budget, 0);
}

Test(budget, as_many_blocks_are_kept_as_it_has_places)
{
    struct api_budget budget = {0};
    void *blocks[API_IDLE_BLOCKS + 3];
    size_t size = MIB;
    for (size_t i = 0; i < COUNT(blocks); i++)
        blocks[i] = api_block_resize(&budget, NULL, 0, &size);
    for (size_t i = 0; i < COUNT(blocks); i++)
        api_block_free(&budget, blocks[i], size);
    cr_expect_eq(used(&budget), 0);
    cr_expect_eq(idle(&budget), API_IDLE_BLOCKS * size);
    api_budget_trim(&budget, 0);
    cr_expect_eq(idle(&budget), 0);
}

/* A place counts what has arrived, and uses pages that were kept before. */
Test(budget, places_count_what_has_arrived)
{
    enum { SIZE = 16 << 20, FIRST = 1 << 20 };
    struct api_budget budget = {.limit = 64 << 20};
    for (int round = 0; round < 3; round++) {
        size_t size = SIZE, used = FIRST;
        char *place = api_reservation_new(&budget, 0, used, &size);
        cr_assert(place);
        cr_expect_eq(atomic_load(&budget.used), used);
        cr_expect_eq(atomic_load(&budget.idle), round > 0 ? size - used : 0, "round %d", round);
        for (; used < size; used *= 2) {
            memset(place + used / 2, round, used / 2);
            cr_assert(api_reservation_grow(&budget, place, used, 2 * used));
            cr_expect_eq(atomic_load(&budget.used), 2 * used);
        }
        if (round == 1) /* nothing of a place in use is given back */
            api_budget_trim(&budget, 0);
        for (size_t i = FIRST / 2; i < size / 2; i += 4096)
            cr_assert_eq(place[i], round);
        api_reservation_free(&budget, place, used, size);
        cr_expect_eq(atomic_load(&budget.used), 0);
        cr_expect_eq(atomic_load(&budget.idle), size);
        if (round == 1)
            cr_expect_eq(atomic_load(&budget.idle), SIZE);
    }
    api_budget_trim(&budget, 0);
    cr_expect_eq(atomic_load(&budget.idle), 0);
}

/* Kept pages beyond what a place has used make room for others, and what it has used stays. */
Test(budget, places_give_up_pages_that_others_need)
{
    enum { SIZE = 16 << 20, FIRST = 2 << 20 };
    struct api_budget budget = {.limit = 32 << 20};
    size_t size = SIZE, kept = SIZE, other = 20 << 20;
    void *block = api_block_resize(&budget, NULL, 0, &kept);
    memset(block, 1, kept);
    api_block_free(&budget, block, kept);
    char *place = api_reservation_new(&budget, 0, FIRST, &size);
    cr_assert_eq((void *)place, block, "the kept block is used again");
    memset(place, 7, FIRST);
    void *second = api_block_resize(&budget, NULL, 0, &other);
    cr_assert(second);
    cr_expect_eq(atomic_load(&budget.idle), 0);
    cr_expect_eq(place[FIRST - 1], 7);
    cr_expect_eq(place[FIRST], 0, "given back and cleared by the kernel");
    cr_expect(!api_reservation_grow(&budget, place, FIRST, SIZE), "the limit holds");
    api_reservation_free(&budget, place, FIRST, size);
    api_block_free(&budget, second, other);
    api_budget_trim(&budget, 0);
    cr_expect_eq(atomic_load(&budget.used), 0);
}

/* The last 5 % are for small blocks. */
Test(budget, large_blocks_leave_some_for_small_ones)
{
    struct api_budget budget = {.limit = 10 << 20};
    cr_expect(!api_budget_reserve(&budget, (10 << 20) - 1000));
    cr_expect(api_budget_reserve(&budget, (10 << 20) / 20 * 19));
    cr_expect(!api_budget_reserve(&budget, API_SMALL + 1));
    cr_expect(api_budget_reserve(&budget, API_SMALL));
}

/* resident: what the process of the next test has. */
static size_t resident;
static size_t tell_resident(void) { return resident; }

/* A container of 40 MiB, of which 30 are for requests. */
Test(budget, memory_that_is_not_counted_leaves_less)
{
    struct api_budget budget = {
        .limit = 30 * MIB, .max_resident = 40 * MIB, .resident = tell_resident};
    resident = 5 * MIB;
    cr_expect(api_budget_reserve(&budget, 20 * MIB));
    cr_expect_eq(api_budget_max(&budget, 0), 30 * MIB, "the process has 5 MiB of its own");
    resident = 45 * MIB;
    cr_expect(!api_budget_reserve(&budget, 2 * MIB), "20 are counted, and 25 are not: 15 are left");
    cr_expect_eq(api_budget_max(&budget, 0), 15 * MIB);
    resident = 22 * MIB;
    cr_expect(api_budget_reserve(&budget, 2 * MIB), "it is measured before it is refused");
    cr_expect_eq(api_budget_max(&budget, 0), 30 * MIB);
    resident = 200 * MIB;
    api_budget_release(&budget, 22 * MIB);
    cr_expect_eq(api_budget_measure(&budget), 200 * MIB);
    cr_expect(!api_budget_reserve(&budget, 2), "nothing is left, which is not no limit");
    cr_expect_eq(api_budget_limit(&budget, 0), 30 * MIB, "what a body may have at another time");
}

/* Kept blocks go before a block is refused. */
Test(budget, kept_blocks_make_room_in_the_process)
{
    struct api_budget budget = {
        .limit = 30 * MIB, .max_resident = 40 * MIB, .resident = tell_resident};
    size_t size = 12 * MIB, other = 9 * MIB;
    resident = 0;
    api_block_free(&budget, api_block_resize(&budget, NULL, 0, &size), size);
    resident = 32 * MIB;
    void *block = api_block_resize(&budget, NULL, 0, &other);
    cr_expect(block, "12 are idle, 20 are not counted");
    cr_expect_eq(idle(&budget), 0);
    api_block_free(&budget, block, other);
    api_budget_trim(&budget, 0);
}

/* A buffer whose size was announced stays at its place while it grows. */
Test(budget, announced_buffers_do_not_move)
{
    enum { SIZE = 9000000 };
    struct api_budget budget = {.limit = 64 << 20};
    struct api_buffer buffer = {.budget = &budget, .expected = SIZE};
    const char *place = NULL;
    for (size_t size = 65536; size < SIZE; size = size * 2 < SIZE ? size * 2 : SIZE) {
        cr_assert(api_buffer_reserve(&buffer, size));
        memset(buffer.data + buffer.size, (int)(size >> 16), size - buffer.size);
        buffer.size = size;
        cr_expect(!place || place == buffer.data);
        place = buffer.reserved ? buffer.data : NULL;
    }
    cr_assert(api_buffer_reserve(&buffer, SIZE) && place == buffer.data);
    cr_expect_eq(buffer.data[65535], 1);
    cr_expect_eq(buffer.data[1 << 20], 32);
    cr_expect(!api_buffer_reserve(&buffer, (size_t)SIZE + (8 << 20)), "more than was announced");
    api_buffer_free(&buffer);
    api_budget_trim(&budget, 0);
    cr_expect_eq(atomic_load(&budget.used) + atomic_load(&budget.idle), 0);
}
