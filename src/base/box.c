/* Copies of boxes, one contiguous run at a time. */
#include "base/box.h"

#include <string.h>

/* The byte of side's array at which the element of box at `place` stands. */
static char *address(const ct_box_side *side, const int64_t *place, int rank, size_t element_bytes)
{
    int64_t index = 0;
    for (int i = 0; i < rank; i++) index = index * side->sizes[i] + place[i] + (side->offsets ? side->offsets[i] : 0);
    return (char *)side->data + (size_t)index * element_bytes;
}

void ct_box_copy(int rank, const int64_t *sizes, size_t element_bytes, const ct_box_side *from, const ct_box_side *to)
{
    for (int i = 0; i < rank; i++)
        if (!sizes[i]) return;
    /* Dims [outer, rank) are one run; dim outer itself need not be whole on either side, those after it are. */
    int outer = rank;
    int64_t run = 1;
    while (outer > 0) {
        outer--;
        run *= sizes[outer];
        if (sizes[outer] != from->sizes[outer] || sizes[outer] != to->sizes[outer]) break;
    }
    int64_t place[CT_MAX_RANK] = {0};
    for (;;) {
        memcpy(address(to, place, rank, element_bytes), address(from, place, rank, element_bytes),
               (size_t)run * element_bytes);
        int dim = outer - 1;
        while (dim >= 0 && ++place[dim] == sizes[dim]) place[dim--] = 0;
        if (dim < 0) return;
    }
}
