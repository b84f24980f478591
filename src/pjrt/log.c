/* The plugin's own log. */
#include "pjrt/internal.h"

void ct__log_hide(const ct_plugin *plugin)
{
    (void)plugin;
}

void ct__log_show(const ct_plugin *plugin)
{
    (void)plugin;
}
