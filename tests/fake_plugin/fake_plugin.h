/* A PJRT plugin that misbehaves on request. It has two devices with one memory each, side by side on a torus,
 * "compiles" anything into a program with two outputs, each a copy of the first argument, and counts what it hands out.
 *
 * GetPjrtApi reads FAKE_PLUGIN_TABLE: "null" returns nothing, "tiny" a table without a version, "major" version 1.0,
 * "short" a table that lacks needed functions, "mute" one without error functions, "old" one that ends after
 * PJRT_Compile, "bare" one that ends there and has no optional functions before it either.
 */
#ifndef FAKE_PLUGIN_H
#define FAKE_PLUGIN_H

#include <stdbool.h>

typedef enum fake_lie {
    FAKE_HONEST,
    FAKE_HUGE_RANK,        /* a buffer of 200 dimensions */
    FAKE_NEGATIVE_SIZE,    /* a dimension of -1 */
    FAKE_OVERFLOWING_SIZE, /* dimensions whose product overflows */
    FAKE_UNKNOWN_TYPE,     /* an element type that does not exist */
    FAKE_NO_CLIENT,        /* success, but no object */
    FAKE_NO_BUFFER,
    FAKE_NO_EVENT,
    FAKE_NO_EXECUTABLE,
    FAKE_NO_TOPOLOGY,
    FAKE_NO_OUTPUT,       /* the second output stays NULL */
    FAKE_NO_DEVICE,       /* no addressable device */
    FAKE_FOREIGN_DEVICE,  /* an addressable device that is not among the devices */
    FAKE_OUTPUT_COUNT,    /* shapes for another number of outputs */
    FAKE_STRANGE_CODE,    /* errors with a code beyond the list */
    FAKE_OK_CODE,         /* errors whose code says OK */
    FAKE_GROWING_PROGRAM, /* the optimized program is larger on the second call */
    FAKE_NOT_A_PROGRAM,   /* the optimized program is noise */
    FAKE_EMPTY_SERIAL,    /* serializes to nothing */
    FAKE_SAME_PLACE,      /* every device has the same coordinates */
    FAKE_NO_PLACE,        /* coordinates below zero */
    FAKE_NO_SERIAL,       /* cannot serialize */
    FAKE_BAD_SERIAL,      /* does not load what it serialized */
    FAKE_NUM_LIES
} fake_lie;

typedef struct fake_control {
    int fail_at;     /* the call with that number (from 1) fails; 0 for none */
    int num_calls;   /* since the last reset */
    bool has_failed; /* the call of fail_at came */
    const char *failed_call;
    fake_lie lie;
    bool delays_events; /* events become ready in release() only */
    bool breaks_events; /* events carry an error */
    int num_live;       /* clients, buffers, events, executables, errors and topologies handed out and not destroyed */
    int num_short_args; /* argument structs that were smaller than the header's */
    int num_donated;    /* arguments donated over all executions */
    void (*release)(void);
} fake_control;

/* Exported by the library. */
typedef fake_control *fake_plugin_control_function(void);
fake_control *fake_plugin_control(void);

#endif
