/* From one sharding of a tensor to another, in steps planned before any is made, so that plans can be compared.
 *
 *   per dim, mesh axes   from: [a b | c d]      to: [a b | e f]      a b is the common part
 *                        c d are taken off, innermost first: all_gather; or all_to_all where another dim wants them
 *                        e f are put on, in order: reduce_scatter where the tensor is partial over them, else a slice
 *   what is still partial and must not be: one all_reduce, last, when the tensor is smallest
 *
 * One collective per mesh axis, that is, per torus axis.
 */
#include <string.h>

#include "base/alloc.h"
#include "graph/collectives.h"
#include "graph/compare.h"
#include "graph/constant.h"
#include "graph/elementwise.h"
#include "graph/shape.h"
#include "graph/slice.h"
#include "spmd/localizer.h"

typedef enum step_kind { GATHER, MOVE, SCATTER, SLICE, PAD, TRIM, ALL_REDUCE, MASK } step_kind;

typedef struct step {
    step_kind kind;
    int dim, to_dim; /* MOVE: off dim, onto to_dim */
    uint32_t mesh_axes;
    int64_t size; /* PAD, TRIM: of the dim after it, on one device */
} step;

enum { MAX_STEPS = 6 * CT_MAX_MESH_AXES };

typedef struct plan {
    int count;
    step steps[MAX_STEPS];
    ct_sharding now; /* where the steps so far lead */
} plan;

static void add(plan *p, step_kind kind, int dim, int mesh_axis, int64_t size)
{
    CT_ASSERT(p->count < MAX_STEPS);
    p->steps[p->count++] =
        (step){.kind = kind, .dim = dim, .mesh_axes = mesh_axis < 0 ? 0 : 1u << mesh_axis, .size = size};
}

static int common_length(const ct_sharding *a, const ct_sharding *b, int dim)
{
    int length = 0;
    if (a->padded[dim] != b->padded[dim]) return 0; /* the boundaries differ */
    while (length < a->at.count[dim] && length < b->at.count[dim] &&
           a->at.mesh_axes[dim][length] == b->at.mesh_axes[dim][length])
        length++;
    return length;
}

static int innermost(const ct_sharding *sharding, int dim)
{
    int count = sharding->at.count[dim];
    return count ? sharding->at.mesh_axes[dim][count - 1] : -1;
}

/* Puts the rest of to's mesh axes on dim. */
static void put_on(plan *p, const ct_mesh *mesh, const ct_tensor *type, const ct_sharding *to, int dim)
{
    while (p->now.at.count[dim] < to->at.count[dim]) {
        int place = p->now.at.count[dim], axis = to->at.mesh_axes[dim][place];
        if (!place && to->padded[dim] && p->now.padded[dim] != to->padded[dim]) {
            add(p, PAD, dim, -1, to->padded[dim]);
            p->now.padded[dim] = to->padded[dim];
        }
        bool is_partial = p->now.partial & (1u << axis);
        add(p, is_partial ? SCATTER : SLICE, dim, axis, 0);
        p->now.partial &= ~(1u << axis);
        p->now.at.mesh_axes[dim][place] = axis;
        p->now.at.count[dim]++;
    }
    (void)mesh, (void)type;
}

/* Another dim that wants mesh_axis next, or -1. */
static int wants_next(const plan *p, const ct_sharding *to, int rank, int mesh_axis)
{
    for (int i = 0; i < rank; i++) {
        int place = p->now.at.count[i];
        if (place >= to->at.count[i] || to->at.mesh_axes[i][place] != mesh_axis) continue;
        if (common_length(&p->now, to, i) == place && !to->padded[i] && !p->now.padded[i]) return i;
    }
    return -1;
}

static void make_plan(const ct_mesh *mesh, const ct_tensor *type, const ct_sharding *from, const ct_sharding *to,
                      plan *p)
{
    *p = (plan){.now = *from};
    int rank = type->rank;
    uint32_t masked = to->partial & ~from->partial;
    /* what needs nothing taken off first */
    for (int i = 0; i < rank; i++)
        if (common_length(&p->now, to, i) == p->now.at.count[i]) {
            /* a mesh axis that is still on another dim cannot be put on yet */
            bool is_free = true;
            for (int j = p->now.at.count[i]; j < to->at.count[i]; j++)
                is_free &= !ct__placement_uses(&p->now.at, to->at.mesh_axes[i][j]);
            if (is_free) put_on(p, mesh, type, to, i);
        }
    for (int i = 0; i < rank; i++) {
        int common = common_length(&p->now, to, i);
        while (p->now.at.count[i] > common) {
            int axis = innermost(&p->now, i), target = p->now.padded[i] ? -1 : wants_next(p, to, rank, axis);
            p->now.at.count[i]--;
            if (target >= 0 && target != i) {
                add(p, MOVE, i, axis, 0);
                p->steps[p->count - 1].to_dim = target;
                p->now.at.mesh_axes[target][p->now.at.count[target]++] = axis;
            } else {
                add(p, GATHER, i, axis, 0);
            }
        }
        if (!p->now.at.count[i] && p->now.padded[i] && p->now.padded[i] != to->padded[i]) {
            add(p, TRIM, i, -1, type->axes[i].size);
            p->now.padded[i] = 0;
        }
    }
    for (int i = 0; i < rank; i++) put_on(p, mesh, type, to, i);
    uint32_t rest = p->now.partial & ~to->partial;
    if (rest) {
        add(p, ALL_REDUCE, 0, -1, 0);
        p->steps[p->count - 1].mesh_axes = rest;
        p->now.partial &= ~rest;
    }
    if (masked) {
        add(p, MASK, 0, -1, 0);
        p->steps[p->count - 1].mesh_axes = masked;
        p->now.partial |= masked;
    }
}

static int64_t group_size(const ct_mesh *mesh, uint32_t mesh_axes)
{
    int64_t size = 1;
    for (int i = 0; i < mesh->num_axes; i++)
        if (mesh_axes & (1u << i)) size *= mesh->axes[i].size;
    return size;
}

double ct__reshard_cost(const ct_localizer *l, const ct_tensor *type, const ct_sharding *from, const ct_sharding *to)
{
    plan p;
    make_plan(l->mesh, type, from, to, &p);
    double bytes = (double)ct_dtype_bytes(type->dtype), cost = 0;
    for (int i = 0; i < type->rank; i++) bytes *= (double)ct_sharding_local_size(l->mesh, from, i, type->axes[i].size);
    for (int i = 0; i < p.count; i++) {
        double group = (double)group_size(l->mesh, p.steps[i].mesh_axes);
        switch (p.steps[i].kind) {
        case GATHER:
            cost += bytes * (group - 1);
            bytes *= group;
            break;
        case MOVE: cost += bytes * (group - 1) / group; break;
        case SCATTER:
            cost += bytes * (group - 1) / group;
            bytes /= group;
            break;
        case SLICE: bytes /= group; break;
        case ALL_REDUCE: cost += 2 * bytes * (group - 1) / group; break;
        case PAD:
        case TRIM:
        case MASK: break;
        }
        cost += 1e-3;
    }
    return cost;
}

static const char *mesh_axes_text(const ct_localizer *l, uint32_t mesh_axes)
{
    const char *text = "";
    for (int i = 0; i < l->mesh->num_axes; i++)
        if (mesh_axes & (1u << i))
            text = ct_arena_printf(&l->graph->arena, "%s%s%s", text, *text ? " " : "", l->mesh->axes[i].name);
    return text;
}

/* x where the device is first along mesh_axes, else zeros: the summands of x. */
static ct_tensor *mask_summand(ct_tensor *x, const char *mesh_axes)
{
    ct_tensor *index = ct_mesh_index(x->graph, mesh_axes);
    return ct_select(ct_eq(index, ct_scalar_like(index, 0)), x, ct_scalar_like(x, 0));
}

static ct_tensor *run_step(ct_localizer *l, const step *s, ct_tensor *x)
{
    const char *axis = x->rank ? x->axes[s->dim].name : "", *mesh_axes = mesh_axes_text(l, s->mesh_axes);
    int64_t size = x->rank ? x->axes[s->dim].size : 0;
    switch (s->kind) {
    case GATHER: return ct_all_gather(x, axis, mesh_axes);
    case MOVE: return ct_all_to_all(x, x->axes[s->to_dim].name, axis, mesh_axes);
    case SCATTER: return ct_reduce_scatter(x, axis, mesh_axes);
    case SLICE: {
        int64_t local = size / group_size(l->mesh, s->mesh_axes);
        ct_tensor *index = ct_mesh_index(x->graph, mesh_axes);
        return ct_dynamic_slice(x, axis, ct_mul(index, ct_scalar_like(index, (double)local)), local);
    }
    case PAD: return ct_pad(x, axis, 0, s->size - size, 0);
    case TRIM: return ct_slice(x, axis, 0, s->size);
    case ALL_REDUCE: return ct_all_reduce(x, CT_REDUCTION_SUM, mesh_axes);
    case MASK: return mask_summand(x, mesh_axes);
    }
    CT_BUG("step %d", (int)s->kind);
}

void ct__note_collective(ct_localizer *l, const ct_tensor *result)
{
    if (result->id >= l->num_why) {
        int count = CT_MAX(result->id + 1, l->num_why * 2);
        l->why = ct_realloc(l->why, (size_t)count * sizeof(*l->why));
        memset(l->why + l->num_why, 0, (size_t)(count - l->num_why) * sizeof(*l->why));
        l->num_why = count;
    }
    l->why[result->id] = l->reason;
}

/* ---- several mesh axes of one dim ---- */

/* A run of gathers or scatters of one dim; axes: of the mesh, outermost first, which is how the dim is split. */
typedef struct axis_run {
    step_kind kind;
    int dim, count, axes[CT_MAX_MESH_AXES];
} axis_run;

static int64_t run_size(const ct_localizer *l, const axis_run *run)
{
    int64_t size = 1;
    for (int i = 0; i < run->count; i++) size *= l->mesh->axes[run->axes[i]].size;
    return size;
}

/* The axes of the run as dims of their own before its dim: of their size (for a scatter) or of size 1. */
static ct_tensor *unfold(const ct_localizer *l, const axis_run *run, ct_tensor *x)
{
    ct_axis axes[2 * CT_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < run->dim; i++) axes[rank++] = x->axes[i];
    for (int i = 0; i < run->count; i++) {
        const char *name = ct_arena_printf(&l->graph->arena, "part.%d", i);
        int64_t size = run->kind == GATHER ? 1 : l->mesh->axes[run->axes[i]].size;
        axes[rank++] = (ct_axis){ct__intern_z(l->graph, name), size};
    }
    for (int i = run->dim; i < x->rank; i++) axes[rank++] = x->axes[i];
    if (run->kind != GATHER) axes[run->dim + run->count].size /= run_size(l, run);
    return ct__reshape(CT_LOC, x, rank, axes);
}

static ct_tensor *fold(const axis_run *run, ct_tensor *x)
{
    ct_axis axes[CT_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < run->dim; i++) axes[rank++] = x->axes[i];
    axes[rank] = x->axes[run->dim + run->count];
    for (int i = 0; i < run->count; i++) axes[rank].size *= x->axes[run->dim + i].size;
    rank++;
    for (int i = run->dim + run->count + 1; i < x->rank; i++) axes[rank++] = x->axes[i];
    return ct__reshape(CT_LOC, x, rank, axes);
}

/* One part; it takes the axes in order from `first` on, around: gathers from the innermost, scatters from the
 * outermost. */
static ct_tensor *run_rotated(ct_localizer *l, const axis_run *run, ct_tensor *x, int first)
{
    bool is_gather = run->kind == GATHER;
    x = unfold(l, run, x);
    for (int i = 0; i < run->count; i++) {
        int k = (first + i) % run->count, place = is_gather ? run->count - 1 - k : k;
        const char *axis = x->axes[run->dim + place].name, *mesh_axis = l->mesh->axes[run->axes[place]].name;
        x = is_gather ? ct_all_gather(x, axis, mesh_axis) : ct_reduce_scatter(x, axis, mesh_axis);
        if (ct_tensor_is_poison(x)) return x;
        ct__note_collective(l, x);
    }
    return fold(run, x);
}

/* The names of x's axes in order, that of dim `first` before the others. */
static const char *axis_order(ct_localizer *l, const ct_tensor *x, int first)
{
    const char *order = x->axes[first].name;
    for (int i = 0; i < x->rank; i++)
        if (i != first) order = ct_arena_printf(&l->graph->arena, "%s %s", order, x->axes[i].name);
    return order;
}

/* libtpu makes an all-reduce of a scatter along the fastest dim in memory, which is a program's last dim where nothing
 * says otherwise: so the scattered dim goes first. What computes x is free to write it that way. */
static ct_tensor *run_joint(ct_localizer *l, const axis_run *run, ct_tensor *x)
{
    uint32_t mesh_axes = 0;
    for (int i = 0; i < run->count; i++) mesh_axes |= 1u << run->axes[i];
    const char *axis = x->axes[run->dim].name, *text = mesh_axes_text(l, mesh_axes);
    const char *own_order = axis_order(l, x, 0);
    bool moves = run->kind == SCATTER && run->dim > 0;
    if (moves) x = ct_transpose(x, axis_order(l, x, run->dim));
    x = run->kind == GATHER ? ct_all_gather(x, axis, text) : ct_reduce_scatter(x, axis, text);
    if (ct_tensor_is_poison(x)) return x;
    ct__note_collective(l, x);
    return moves ? ct_transpose(x, own_order) : x;
}

/* In parts along another dim, or as one where none can be split. */
static ct_tensor *run_parts(ct_localizer *l, const axis_run *run, ct_tensor *x)
{
    int other = -1, num_parts = run->count;
    for (int i = 0; i < x->rank && other < 0; i++)
        if (i != run->dim && x->axes[i].size % num_parts == 0) other = i;
    if (other < 0) return run_rotated(l, run, x, 0);
    ct_tensor *parts[CT_MAX_MESH_AXES];
    const char *axis = x->axes[other].name;
    int64_t size = x->axes[other].size / num_parts;
    for (int i = 0; i < num_parts; i++) parts[i] = run_rotated(l, run, ct_slice(x, axis, i * size, (i + 1) * size), i);
    return ct_concat(parts, num_parts, axis);
}

/* The steps of p from `first` on that are of one kind and dim. */
static axis_run run_from(const plan *p, int first)
{
    const step *steps = &p->steps[first];
    axis_run run = {.kind = steps[0].kind, .dim = steps[0].dim};
    while (first + run.count < p->count && steps[run.count].kind == run.kind && steps[run.count].dim == run.dim)
        run.count++;
    for (int i = 0; i < run.count && steps[i].mesh_axes; i++) {
        int axis = 0;
        while (!(steps[i].mesh_axes & (1u << axis))) axis++;
        run.axes[run.kind == GATHER ? run.count - 1 - i : i] = axis; /* gathers begin with the innermost */
    }
    return run;
}

/* A run over more than one axis in the form that the recipe wants, of which run->count axes are done; NULL: step by
 * step. */
static ct_tensor *run_in_form(ct_localizer *l, axis_run *run, ct_tensor *x)
{
    if ((run->kind != GATHER && run->kind != SCATTER) || run->count < 2) return NULL;
    ct_collective_form form = run->kind == GATHER ? l->parallel->gather_form : l->parallel->reduce_form;
    bool is_in_order = true; /* a joint collective numbers its group in the mesh's order of axes */
    for (int i = 1; i < run->count; i++) is_in_order &= run->axes[i] > run->axes[i - 1];
    if (form == CT_FORM_PAIRS && is_in_order) { /* of three axes, a gather begins with the innermost alone */
        if (run->kind == GATHER) {
            int count = run->count % 2 ? 1 : 2, skipped = run->count - count;
            for (int i = 0; i < count; i++) run->axes[i] = run->axes[skipped + i];
            run->count = count;
        } else {
            run->count = 2;
        }
        return run_joint(l, run, x);
    }
    if (form == CT_FORM_JOINT && is_in_order) return run_joint(l, run, x);
    if (form == CT_FORM_PARTS && x->rank + run->count <= CT_MAX_RANK) return run_parts(l, run, x);
    return NULL;
}

ct_tensor *ct__reshard(ct_localizer *l, ct_tensor *x, const ct_tensor *type, const ct_sharding *from,
                       const ct_sharding *to)
{
    plan p;
    make_plan(l->mesh, type, from, to, &p);
    for (int i = 0; i < p.count; i++) {
        axis_run run = run_from(&p, i);
        ct_tensor *joined = run_in_form(l, &run, x);
        x = joined ? joined : run_step(l, &p.steps[i], x);
        if (ct_tensor_is_poison(x)) return x;
        if (joined)
            i += run.count - 1;
        else if (p.steps[i].mesh_axes)
            ct__note_collective(l, x);
    }
    CT_ASSERT(ct_sharding_equal(&p.now, to));
    return x;
}
