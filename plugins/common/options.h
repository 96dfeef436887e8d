/* The settings of one device, for plugins that have none: heddle_pdevice_options.settings must be empty. */
#ifndef HEDDLE_PLUGINS_COMMON_OPTIONS_H
#define HEDDLE_PLUGINS_COMMON_OPTIONS_H

#include "plugins/common/perror.h"

/* HEDDLE_EINVAL with the first key where device.open was given a setting; options may be NULL. Any thread. */
static inline heddle_status p_no_device_settings(const char *plugin, uint32_t index,
                                                 const heddle_pdevice_options *options, heddle_error *err) {
  if (!HEDDLE_HAS(heddle_pdevice_options, options, settings) || options->settings.count == 0) return HEDDLE_OK;
  return p_fail(err, HEDDLE_EINVAL, 0, "%s:%u: there is no setting '%.100s' of one device", plugin, index,
                ((const heddle_pkeyvalue *)options->settings.data)->key);
}

#endif
