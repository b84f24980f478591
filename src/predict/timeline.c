/* The priced program in time: the TensorCore walks the schedule, what was started runs beside it.
 *
 *   start     begins when all its resources are free, ends so many seconds later: the resources are taken until then
 *   done      the TensorCore waits until its start has ended
 *   synchronous transfers go before what is under way on the same resources, which is held up for as long
 *   loop      two turns are simulated; the second, which finds the clocks as a turn leaves them, stands for all others
 *   branches  the dearest one is run
 */
#include <string.h>

#include "predict/internal.h"

typedef struct clock_state {
    double now;
    double free_at[CT__NUM_RESOURCES];
} clock_state;

enum { MAX_DEPTH = 256, MAX_STEADY = 6 }; /* deeper than the second, one turn stands for all */

static void run(ct__sim *sim, const ct_hlo_computation *computation, double times, int depth, clock_state *clock);

static double compute_seconds(const ct__sim *sim, const ct__priced *at)
{
    if (at->at_peak <= 0) return at->compute;
    return CT_MAX(at->at_peak / sim->chip->attention_efficiency[sim->efficiency], at->least);
}

static void spend(const ct__sim *sim, ct__priced *at, double times, double seconds, clock_state *clock)
{
    clock->now += seconds;
    at->waited.at[sim->efficiency] += times * seconds;
}

static void launch(ct__sim *sim, ct__priced *at, double times, clock_state *clock)
{
    double begin = clock->now;
    for (int r = 0; r < CT__NUM_RESOURCES; r++)
        if (at->resources >> r & 1) begin = CT_MAX(begin, clock->free_at[r]);
    at->finish = begin + at->seconds;
    for (int r = 0; r < CT__NUM_RESOURCES; r++)
        if (at->resources >> r & 1) clock->free_at[r] = at->finish;
    at->busy.at[sim->efficiency] += times * at->seconds;
    size_t num_left = 0;
    for (size_t i = 0; i < sim->num_flying; i++)
        if (sim->flying[i]->finish > clock->now && sim->flying[i] != at) sim->flying[num_left++] = sim->flying[i];
    sim->num_flying = num_left;
    sim->flying = ct__grow(sim->arena, sim->flying, sim->num_flying, &sim->flying_capacity, sizeof(ct__priced *));
    sim->flying[sim->num_flying++] = at;
}

/* A transfer that the TensorCore does itself. */
static void run_transfer(ct__sim *sim, ct__priced *at, double times, clock_state *clock)
{
    for (size_t i = 0; i < sim->num_flying; i++) {
        ct__priced *other = sim->flying[i];
        if (other->finish > clock->now && other->resources & at->resources) other->finish += at->seconds;
    }
    for (int r = 0; r < CT__NUM_RESOURCES; r++)
        if (at->resources >> r & 1) clock->free_at[r] = CT_MAX(clock->free_at[r], clock->now) + at->seconds;
    at->busy.at[sim->efficiency] += times * at->seconds;
    spend(sim, at, times, at->seconds + at->compute, clock);
}

static void run_loop(ct__sim *sim, const ct__priced *loop, double times, int depth, clock_state *clock)
{
    int64_t turns = loop->turns < 0 ? 1 : loop->turns;
    int num_run = turns < 2 || depth >= MAX_STEADY ? 1 : 2;
    for (int turn = 0; turn < num_run && turn < turns; turn++) {
        double stands_for = turn + 1 == num_run ? (double)(turns - turn) : 1, before = clock->now;
        for (size_t i = loop->at->num_calls; i--;) /* condition, then body */
            run(sim, loop->at->calls[i], times * stands_for, depth + 1, clock);
        clock->now += (stands_for - 1) * (clock->now - before);
    }
}

/* The branches' own times, found by running each alone for nothing: what flies is then as it was. */
static void run_branch(ct__sim *sim, const ct__priced *branch, double times, int depth, clock_state *clock)
{
    const ct_hlo_computation *dearest = NULL;
    double most = -1;
    size_t num_flying = sim->num_flying;
    ct__priced **flying = CT_ARENA_ARRAY(sim->arena, ct__priced *, num_flying + 1);
    double *finish = CT_ARENA_ARRAY(sim->arena, double, num_flying + 1);
    for (size_t f = 0; f < num_flying; f++) {
        flying[f] = sim->flying[f];
        finish[f] = flying[f]->finish;
    }
    for (size_t i = 0; i < branch->at->num_calls; i++) {
        clock_state alone = *clock;
        run(sim, branch->at->calls[i], 0, depth + 1, &alone);
        for (size_t f = 0; f < num_flying; f++) flying[f]->finish = finish[f];
        if (num_flying) memcpy(sim->flying, flying, num_flying * sizeof(*flying));
        sim->num_flying = num_flying;
        if (alone.now - clock->now <= most) continue;
        most = alone.now - clock->now;
        dearest = branch->at->calls[i];
    }
    if (dearest) run(sim, dearest, times, depth + 1, clock);
}

static void run_one(ct__sim *sim, ct__priced *at, double times, int depth, clock_state *clock)
{
    if (!sim->efficiency) at->times += times;
    switch (at->role) {
    case CT__FREE: break;
    case CT__COMPUTE: {
        double seconds = compute_seconds(sim, at);
        at->busy.at[sim->efficiency] += times * seconds;
        spend(sim, at, times, seconds, clock);
        break;
    }
    case CT__TRANSFER: run_transfer(sim, at, times, clock); break;
    case CT__START:
        launch(sim, at, times, clock);
        spend(sim, at, times, at->compute, clock);
        break;
    case CT__DONE:
        if (at->start && at->start->finish > clock->now)
            spend(sim, at->start, times, at->start->finish - clock->now, clock);
        at->busy.at[sim->efficiency] += times * at->compute;
        spend(sim, at, times, at->compute, clock);
        break;
    case CT__LOOP: run_loop(sim, at, times, depth, clock); break;
    case CT__BRANCH: run_branch(sim, at, times, depth, clock); break;
    case CT__CALL:
        for (size_t i = 0; i < at->at->num_calls; i++) run(sim, at->at->calls[i], times, depth + 1, clock);
        break;
    }
}

static void run(ct__sim *sim, const ct_hlo_computation *computation, double times, int depth, clock_state *clock)
{
    ct__priced *priced = ct__priced_of(sim, computation);
    if (!priced || depth > MAX_DEPTH) return;
    for (size_t i = 0; i < computation->num_instructions; i++) run_one(sim, &priced[i], times, depth, clock);
}

double ct__simulate(ct__sim *sim)
{
    clock_state clock = {0};
    sim->num_flying = 0;
    run(sim, sim->module->entry, 1, 0, &clock);
    return clock.now;
}
