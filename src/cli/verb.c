/* What all verbs share. */
#include "cli/verb.h"

#include <stdio.h>

int ct_verb_fail(const char *verb, ct_status *status)
{
    if (!status) return CT_EXIT_OK;
    fflush(stdout);
    fprintf(stderr, "ctitan %s: %s\n", verb, ct_status_message(status));
    ct_status_free(status);
    return CT_EXIT_FAILED;
}
