#include "chips/slice.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

ct_status *ct_chip_slice_parse(const char *name, ct_chip_slice *out_slice)
{
    *out_slice = (ct_chip_slice){0};
    char chip[16] = "";
    size_t length = strcspn(name, ":");
    if (length < sizeof(chip)) memcpy(chip, name, length);
    ct_chip_slice slice = {.chip = ct_chip_find(chip)};
    if (!slice.chip || name[length] != ':')
        return ct_error(
            CT_CODE_INVALID_ARGUMENT,
            "a topology must be a chip and the sizes of a slice of it, as v6e:4x4 or v5p:4x4x8, with one of "
            "the chips %s, found \"%s\"",
            ct_chip_names(), name);
    slice.num_devices = slice.chip->devices_per_chip;
    const char *at = name + length;
    do {
        char *end = NULL;
        int64_t size = isdigit((unsigned char)at[1]) ? strtoll(at + 1, &end, 10) : 0;
        if (slice.num_axes == slice.chip->torus_dims || size < 1 || size > slice.chip->max_slice_devices)
            return ct_error(CT_CODE_INVALID_ARGUMENT, "a topology of %s has %d sizes of 1 to %d, as %s, found \"%s\"",
                            slice.chip->name, slice.chip->torus_dims, slice.chip->max_slice_devices,
                            slice.chip->torus_dims == 2 ? "4x4" : "4x4x8", name);
        slice.sizes[slice.num_axes++] = size;
        slice.num_devices *= size; /* at most a pod squared and cubed: no overflow */
        at = end;
    } while (*at == 'x');
    if (*at || slice.num_axes != slice.chip->torus_dims)
        return ct_error(CT_CODE_INVALID_ARGUMENT, "a topology of %s has %d sizes, as %s, found \"%s\"",
                        slice.chip->name, slice.chip->torus_dims, slice.chip->torus_dims == 2 ? "4x4" : "4x4x8", name);
    if (slice.num_devices > slice.chip->max_slice_devices)
        return ct_error(CT_CODE_INVALID_ARGUMENT, "the topology \"%s\" has %lld devices; a slice of %s has at most %d",
                        name, (long long)slice.num_devices, slice.chip->name, slice.chip->max_slice_devices);
    *out_slice = slice;
    return NULL;
}
