/* Where plugins lie: the names that wheels give them, under the folders of a search list. Internal. */
#ifndef CT_PJRT_PLUGIN_SEARCH_H
#define CT_PJRT_PLUGIN_SEARCH_H

#include "pjrt/plugin.h"

/* The path of the first plugin for opts->platform that exists; heap.
 * Errors: INVALID_ARGUMENT for an unknown platform; NOT_FOUND with all places searched.
 */
CT_MUST_USE ct_status *ct__plugin_find(const ct_plugin_opts *opts, char **out_path);

#endif
