/* How often a loop turns. The state is a tuple; the condition compares one element with a bound:
 *
 *   while(tuple(0, ...)), condition: compare(gte(state, 0), 8), LT, body: tuple(add(gte(state, 0), 1), ...)
 *
 * Any of the three may sit in a fusion, and the bound may be an element of the state that the body hands on unchanged.
 */
#include <stdlib.h>
#include <string.h>

#include "pjrt/collectives.h"

enum { MAX_FRAMES = 8 };

/* Where a value stands: an instruction, and the calls that lead into its computation. */
typedef struct {
    const ct_hlo_instruction *at;
    const ct_hlo_instruction *callers[MAX_FRAMES];
    int depth;
} value;

static bool is(const ct_hlo_instruction *instruction, const char *opcode)
{
    return !strcmp(instruction->opcode, opcode);
}

/* Follows what only passes a value on: copies, and parameters and roots of fusions. False: too deep. */
static bool resolve(value *v)
{
    for (int steps = 0; steps < 100; steps++) {
        static const char *const passing[] = {"copy", "bitcast", "convert", "reshape", "copy-start", "copy-done"};
        bool passes = false;
        for (size_t i = 0; i < CT_COUNT(passing); i++) passes = passes || is(v->at, passing[i]);
        if (passes && v->at->num_operands) {
            v->at = v->at->operands[0];
        } else if (is(v->at, "parameter") && v->depth) {
            const ct_hlo_instruction *caller = v->callers[--v->depth];
            if (v->at->index < 0 || (size_t)v->at->index >= caller->num_operands) return false;
            v->at = caller->operands[v->at->index];
        } else if ((is(v->at, "fusion") || is(v->at, "call")) && v->at->num_calls && v->depth < MAX_FRAMES) {
            v->callers[v->depth++] = v->at;
            v->at = v->callers[v->depth - 1]->calls[0]->root;
        } else if (is(v->at, "get-tuple-element") && v->at->num_operands) {
            value tuple = *v;
            tuple.at = v->at->operands[0];
            if (is(tuple.at, "parameter") && !tuple.depth) return true; /* an element of the loop's state */
            if (!resolve(&tuple) || !is(tuple.at, "tuple")) return true;
            if (v->at->index < 0 || (size_t)v->at->index >= tuple.at->num_operands) return false;
            int64_t index = v->at->index;
            *v = tuple;
            v->at = tuple.at->operands[index];
        } else {
            return true;
        }
    }
    return false;
}

static value operand_of(const value *v, size_t operand)
{
    value next = *v;
    next.at = v->at->operands[operand];
    return next;
}

/* Which element of the loop's state v is; -1: none. */
static int64_t state_element(value v)
{
    if (!resolve(&v) || !is(v.at, "get-tuple-element") || v.depth || !is(v.at->operands[0], "parameter")) return -1;
    return v.at->index;
}

static bool constant_of(value v, int64_t *out)
{
    if (!resolve(&v) || !is(v.at, "constant") || !v.at->is_integer) return false;
    *out = v.at->integer;
    return *out > -((int64_t)1 << 60) && *out < (int64_t)1 << 60; /* differences cannot overflow */
}

/* The state's element as the body leaves it. */
static bool body_result(const ct_hlo_instruction *loop, int64_t element, value *out)
{
    value root = {.at = loop->calls[0]->root};
    if (!resolve(&root) || !is(root.at, "tuple") || (size_t)element >= root.at->num_operands) return false;
    *out = operand_of(&root, (size_t)element);
    return resolve(out);
}

static bool first_value(const ct_hlo_instruction *loop, int64_t element, int64_t *out)
{
    value start = {.at = loop->operands[0]};
    if (!resolve(&start) || !is(start.at, "tuple") || (size_t)element >= start.at->num_operands) return false;
    return constant_of(operand_of(&start, (size_t)element), out);
}

/* A bound: a constant, or an element that starts as one and that the body does not change. */
static bool bound_of(const ct_hlo_instruction *loop, value v, int64_t *out)
{
    if (constant_of(v, out)) return true;
    int64_t element = state_element(v);
    value result;
    return element >= 0 && body_result(loop, element, &result) && state_element(result) == element &&
           first_value(loop, element, out);
}

/* The step of a counter: add(element, constant) or subtract. */
static bool step_of(const ct_hlo_instruction *loop, int64_t element, int64_t *out)
{
    value next;
    if (!body_result(loop, element, &next) || next.at->num_operands != 2) return false;
    bool adds = is(next.at, "add"), subtracts = is(next.at, "subtract");
    if (!adds && !subtracts) return false;
    for (size_t i = 0; i < (adds ? 2u : 1u); i++)
        if (state_element(operand_of(&next, i)) == element && bound_of(loop, operand_of(&next, 1 - i), out)) {
            if (subtracts) *out = -*out;
            return *out != 0;
        }
    return false;
}

static int64_t known_turns(const char *config)
{
    const char *at = strstr(config, "\"known_trip_count\"");
    if (!at || !(at = strstr(at, "\"n\":\""))) return -1;
    return strtoll(at + 5, NULL, 10);
}

int64_t ct_hlo_loop_turns(const ct_hlo_instruction *loop)
{
    if (!is(loop, "while") || loop->num_calls != 2 || loop->num_operands != 1) return -1;
    int64_t known = known_turns(loop->backend_config), first, step, bound;
    if (known >= 0) return known;
    value test = {.at = loop->calls[1]->root};
    if (!resolve(&test) || !is(test.at, "compare") || test.at->num_operands != 2) return -1;
    int64_t counter = state_element(operand_of(&test, 0));
    size_t bound_operand = 1;
    const char *direction = test.at->direction;
    if (counter < 0) { /* the bound stands on the left */
        counter = state_element(operand_of(&test, 1));
        bound_operand = 0;
        direction = !strcmp(direction, "GT")   ? "LT"
                    : !strcmp(direction, "GE") ? "LE"
                    : !strcmp(direction, "LT") ? "GT"
                    : !strcmp(direction, "LE") ? "GE"
                                               : direction;
    }
    if (counter < 0 || !bound_of(loop, operand_of(&test, bound_operand), &bound) ||
        !first_value(loop, counter, &first) || !step_of(loop, counter, &step))
        return -1;
    int64_t distance = bound - first;
    if (!strcmp(direction, "LE")) distance++;
    if (!strcmp(direction, "GE")) distance--;
    bool ascends = !strcmp(direction, "LT") || !strcmp(direction, "LE") || (!strcmp(direction, "NE") && step > 0);
    bool descends = !strcmp(direction, "GT") || !strcmp(direction, "GE") || (!strcmp(direction, "NE") && step < 0);
    if ((!ascends && !descends) || ascends != (step > 0)) return -1;
    if (ascends ? distance <= 0 : distance >= 0) return 0;
    return (distance + step - (step > 0 ? 1 : -1)) / step;
}
