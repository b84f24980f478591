#include "tokenizer/json_help.h"

#include <stdlib.h>

ct_status *ct__json_unsupported(ct_json_value value, const char *what)
{
    const char *type = NULL;
    ct_status_free(ct_json_get_string(value, "type", &type));
    char *where = ct_json_where(value);
    ct_status *status = ct_error(CT_CODE_UNIMPLEMENTED, "%s: %s is not supported%s%s%s", where, what,
                                 type ? " (\"type\": \"" : "", type ? type : "", type ? "\")" : "");
    free(where);
    return status;
}
