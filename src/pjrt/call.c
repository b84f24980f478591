/* From PJRT_Error to ct_status; a plugin's word on codes and sizes is checked. */
#include "pjrt/internal.h"

static ct_code code_of(ct_plugin *plugin, const PJRT_Error *error)
{
    PJRT_Error_GetCode_Args args = {CT_PJRT_ARGS(PJRT_Error_GetCode), .error = error};
    PJRT_Error *failure = plugin->api->PJRT_Error_GetCode(&args);
    if (failure) {
        plugin->api->PJRT_Error_Destroy(&(PJRT_Error_Destroy_Args){CT_PJRT_ARGS(PJRT_Error_Destroy), .error = failure});
        return CT_CODE_UNKNOWN;
    }
    int code = (int)args.code;
    return code > CT_CODE_OK && code <= CT_CODE_UNAUTHENTICATED ? (ct_code)code : CT_CODE_UNKNOWN;
}

ct_status *ct__pjrt_status(ct_plugin *plugin, PJRT_Error *error, const char *call, const char *file, int line)
{
    if (!error) return NULL;
    PJRT_Error_Message_Args message = {CT_PJRT_ARGS(PJRT_Error_Message), .error = error};
    plugin->api->PJRT_Error_Message(&message);
    int length = message.message ? (int)CT_MIN(message.message_size, (size_t)1 << 20) : 0;
    ct_status *status = ct__status_new(code_of(plugin, error), file, line, "%s: %.*s", call, length,
                                       message.message ? message.message : "");
    plugin->api->PJRT_Error_Destroy(&(PJRT_Error_Destroy_Args){CT_PJRT_ARGS(PJRT_Error_Destroy), .error = error});
    return status;
}

ct_status *ct__pjrt_missing(ct_plugin *plugin, const char *call, const char *file, int line)
{
    return ct__status_new(CT_CODE_UNIMPLEMENTED, file, line, "%s is not in the plugin %s (PJRT API %d.%d)", call,
                          plugin->path, plugin->api->pjrt_api_version.major_version,
                          plugin->api->pjrt_api_version.minor_version);
}
