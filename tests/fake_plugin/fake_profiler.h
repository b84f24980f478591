/* The fake plugin's profiler: it sees one message, FAKE_PROFILER_SEEN, and lends it with a zero byte behind it, as
 * XLA's do. FAKE_PLUGIN_PROFILER=copy writes it into the caller's buffer, as the header of the extension says; =broken
 * cuts it short; =start and =collect fail there.
 */
#ifndef CT_TESTS_FAKE_PROFILER_H
#define CT_TESTS_FAKE_PROFILER_H

#define FAKE_PROFILER_SEEN "\x22\x04host" /* XSpace {hostnames: "host"} */

struct profiler_extension;

/* num_live counts the objects that are not freed. */
struct profiler_extension *fake_profiler_extension(int *num_live);

#endif
