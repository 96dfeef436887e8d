/* core/device_type.c: the numbers of plugins whose devices have the type HEDDLE_DEVICE_EXT. DLPack has one type for all
 * devices that it does not know; a number that stands for a device must not stand for that of another plugin. */
#include "core/device.h"
#include "plugins/common/fnv.h"

int32_t heddle_plugin_device_type(const char *plugin) {
  if (plugin == NULL || plugin[0] == '\0') return 0;
  uint64_t hash = fnv1a_text(plugin);
  return HEDDLE__OWN_TYPES + (int32_t)((hash ^ hash >> 24 ^ hash >> 48) & 0xffffff);
}

int32_t heddle__device_type(int32_t declared, const char *plugin) {
  return declared == HEDDLE_DEVICE_EXT ? heddle_plugin_device_type(plugin) : declared;
}
