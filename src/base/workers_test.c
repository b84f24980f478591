#include "base/testing.h"

#include <stdatomic.h>

#include "base/workers.h"

enum { ITEMS = 1000, MAX_WORKERS = 5 };

typedef struct record {
    atomic_int times[ITEMS];
    atomic_int busy[MAX_WORKERS]; /* items that a worker is at: never two */
    size_t fails_at;
    atomic_int begun;
} record;

static ct_status *work(void *context, int worker, size_t item)
{
    record *r = context;
    atomic_fetch_add(&r->begun, 1);
    if (atomic_fetch_add(&r->busy[worker], 1)) return ct_error(CT_CODE_INTERNAL, "worker %d does two at once", worker);
    atomic_fetch_add(&r->times[item], 1);
    atomic_fetch_sub(&r->busy[worker], 1);
    return item >= r->fails_at ? ct_error(CT_CODE_OUT_OF_RANGE, "item %zu", item) : NULL;
}

static void test_each_once(void **state)
{
    (void)state;
    for (int num_workers = 1; num_workers <= MAX_WORKERS; num_workers++)
        for (size_t num_items = 0; num_items <= ITEMS; num_items = num_items * 7 + 1) {
            record r = {.fails_at = ITEMS};
            expect_ok(ct_workers_run(num_workers, num_items, work, &r));
            for (size_t i = 0; i < ITEMS; i++) assert_int_equal(r.times[i], i < num_items);
        }
}

static void test_error(void **state)
{
    (void)state;
    for (int num_workers = 1; num_workers <= MAX_WORKERS; num_workers++) {
        record r = {.fails_at = 10};
        expect_error(ct_workers_run(num_workers, ITEMS, work, &r), CT_CODE_OUT_OF_RANGE, "item 10");
        for (size_t i = 0; i <= 10; i++) assert_int_equal(r.times[i], 1);
        if (num_workers == 1) assert_int_equal(r.begun, 11);
    }
    assert_int_equal(ct_workers_count(1), 1);
    assert_in_range(ct_workers_count(1000), 1, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_once), cmocka_unit_test(test_error)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
