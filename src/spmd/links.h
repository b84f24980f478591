/* How long a collective takes by the links alone: bytes over bandwidth, no latency, nothing else on the links.
 *
 *   ring of n, both directions     all-gather of B bytes:  B (n - 1) / n / (2 bandwidth)
 *   line of n (no wrap-around)                             B (n - 1) / n / bandwidth, what its last link carries
 *
 * A reduce-scatter takes as long as the all-gather of the same array, an all-reduce twice as long. Along several axes
 * one after the other, the array grows (or shrinks) by each axis' size on the way. Parts of an array that walk the axes
 * in different orders at once use several axes' links at a time.
 *
 * Predictions to compare forms by, not measurements. Bandwidths are those of chips/chips.h, 0.9 of the published peaks.
 * The devices of one chip share its links, and what joins them is taken as six links.
 */
#ifndef CT_SPMD_LINKS_H
#define CT_SPMD_LINKS_H

#include "spmd/mesh.h"

/* The links along each axis of a mesh. Mesh axes that lie on one torus axis share its links; one that is not innermost
 * there reaches over those that are. */
typedef struct ct_links {
    int num_axes;
    int64_t sizes[CT_MAX_MESH_AXES];
    int torus_axis[CT_MAX_MESH_AXES];
    bool is_ring[CT_MAX_MESH_AXES];
    double bytes_per_s[CT_MAX_MESH_AXES]; /* one direction */
} ct_links;

/* chip is PJRT's device kind ("TPU v6 lite") or the short name ("v6e"); wraps and names are per torus axis, as ct_torus
 * has them ('c' joins the devices of one chip). Errors: NOT_FOUND for another chip. */
CT_MUST_USE ct_status *ct_links_init(const char *chip, const ct_mesh *mesh, const bool *wraps, const char *names,
                                     ct_links *out_links);

typedef enum ct_links_kind {
    CT_LINKS_GATHER,   /* all-gather or reduce-scatter; bytes is the whole array, gathered or not yet scattered */
    CT_LINKS_REDUCE,   /* all-reduce */
    CT_LINKS_EXCHANGE, /* all-to-all; bytes is what one device holds */
    CT_LINKS_SHIFT,    /* permute to the next device */
} ct_links_kind;

/* Seconds along one axis. */
double ct_links_axis_time(const ct_links *links, ct_links_kind kind, int axis, double bytes);

/* Seconds along axes one after the other, the first one moving the most (a reduce-scatter's order; a gather's
 * reversed). */
double ct_links_walk_time(const ct_links *links, ct_links_kind kind, int num_axes, const int *axes, double bytes);

/* Seconds when equal parts walk at once, part p along walks[p][0 .. num_axes - 1]: the sum over steps of what the
 * busiest links carry in that step. */
double ct_links_parts_time(const ct_links *links, ct_links_kind kind, int num_axes, int num_parts,
                           const int (*walks)[CT_MAX_MESH_AXES], double bytes);

/* The same for the rotations of axes: as many parts as axes, so that all links are busy. */
double ct_links_all_time(const ct_links *links, ct_links_kind kind, int num_axes, const int *axes, double bytes);

/* Seconds along one ring that passes through all devices of the axes, neighbour by neighbour, over two links of each.
 */
double ct_links_ring_time(const ct_links *links, ct_links_kind kind, int num_axes, const int *axes, double bytes);

#endif
