/* Replay: values of the forward pass at the place where the backward pass wants them, and checkpoint blocks, which use
 * it within one region.
 *
 *   forward:  x -> [block] -> y            backward:  (x, dy) -> barrier -> copies of what was not saved -> derivative
 *
 * The barrier ties the copies to the arrival of the cotangent: without it XLA would merge them with the originals, or
 * run them at once, and nothing would be saved.
 */
#include <string.h>

#include "autodiff/sweep.h"
#include "graph/memory.h"

ct_tensor *ct__replay_value(ct_replay *replay, ct_tensor *tensor)
{
    ct_tensor *known = ct__map_get(&replay->map, tensor);
    if (known) return known;
    ct_tensor *leaf = replay->leaf(replay, tensor);
    if (leaf) {
        ct__map_set(&replay->map, tensor, leaf);
        return leaf;
    }
    ct_node *node = tensor->node;
    CT_ASSERT(node);
    for (int i = 0; i < node->num_operands; i++) ct__replay_value(replay, node->operands[i]);
    ct__node_clone(node, &replay->map);
    return ct__map_get(&replay->map, tensor);
}

static void replace_in_node(ct_replay *replay, ct_node *node);

static void replace_in_region(ct_replay *replay, ct_region *region)
{
    for (ct_node *node = region->first; node; node = node->next) replace_in_node(replay, node);
    for (int i = 0; i < region->num_results; i++)
        if (replay->covers(replay, region->results[i]))
            region->results[i] = ct__replay_value(replay, region->results[i]);
}

static void replace_in_node(ct_replay *replay, ct_node *node)
{
    for (int i = 0; i < node->num_operands; i++)
        if (replay->covers(replay, node->operands[i])) node->operands[i] = ct__replay_value(replay, node->operands[i]);
    for (int i = 0; i < node->num_regions; i++) replace_in_region(replay, node->regions[i]);
}

void ct__replay_nodes(ct_replay *replay, ct_region *region, ct_node *first)
{
    ct_graph *graph = replay->graph;
    ct_insertion saved = {graph->region, graph->insert_before};
    graph->region = region;
    graph->insert_before = first;
    for (ct_node *node = first; node; node = node->next) replace_in_node(replay, node);
    ct__region_leave(graph, saved);
}

/* ---- checkpoint blocks ---- */

static bool in_block(const ct_group *group, const ct_tensor *tensor)
{
    return tensor->node && tensor->node->checkpoint == group;
}

static bool block_covers(const ct_replay *replay, const ct_tensor *tensor)
{
    const ct_block_replay *block = replay->context;
    return in_block(block->group, tensor);
}

static ct_tensor *block_leaf(ct_replay *replay, ct_tensor *tensor)
{
    ct_block_replay *block = replay->context;
    const ct_remat_policy *policy = block->group->policy;
    if (in_block(block->group, tensor)) {
        if (!ct__policy_saves(policy, tensor)) return NULL;
    } else if (tensor->node && tensor->node->op->cheap && !tensor->node->num_operands) {
        return tensor; /* a constant */
    }
    if (!tensor->node || !ct__policy_offloads(policy, tensor)) {
        ct__node_add_operand(block->barrier, tensor);
        return ct__result_like(block->barrier, tensor);
    }
    ct_graph *graph = replay->graph;
    ct_insertion saved = {graph->region, graph->insert_before};
    graph->region = tensor->region;
    graph->insert_before = tensor->node->next;
    ct_tensor *on_host = ct_to_host(tensor);
    ct__region_leave(graph, saved);
    ct__node_add_operand(block->barrier, on_host);
    return ct_to_device(ct__result_like(block->barrier, on_host));
}

void ct__block_begin(ct_block_replay *block, ct_sweep *sweep, ct_node *last)
{
    ct_graph *graph = sweep->graph;
    *block = (ct_block_replay){.group = last->checkpoint};
    block->replay = (ct_replay){.graph = graph, .context = block, .leaf = block_leaf, .covers = block_covers};
    for (ct_node *node = last; node && node->checkpoint == block->group; node = node->previous)
        for (int i = 0; i < node->num_results; i++) {
            ct_tensor *cotangent = ct__map_get(&sweep->cotangents, node->results[i]);
            if (!cotangent) continue;
            if (!block->barrier) {
                block->barrier = ct__node_new(graph, &ct__op_barrier, node->loc, 0, NULL);
                block->barrier->scope = node->scope;
            }
            ct__node_add_operand(block->barrier, cotangent);
            ct__map_set(&sweep->cotangents, node->results[i], ct__result_like(block->barrier, cotangent));
        }
}

void ct__block_end(ct_block_replay *block, ct_sweep *sweep)
{
    if (block->barrier && !sweep->graph->error) {
        ct__replay_nodes(&block->replay, block->barrier->region, block->barrier->next);
        for (int i = 0; i < sweep->cotangents.count; i++) {
            ct_tensor *cotangent = sweep->cotangents.items[i];
            if (cotangent && in_block(block->group, cotangent))
                sweep->cotangents.items[i] = ct__replay_value(&block->replay, cotangent);
        }
    }
    ct__map_free(&block->replay.map);
    *block = (ct_block_replay){0};
}
