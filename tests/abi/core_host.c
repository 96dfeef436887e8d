/* The real loader as a program: makes a context with one plugin and the check layer, opens and closes its devices, and
 * prints their names, or why the plugin is not used. Built against several minors of plugin.h. */
#include <stdio.h>

#include "core/device.h"

int main(int argc, char **argv) {
  heddle_context *ctx;
  heddle_error err = {0, 0, ""};
  const heddle_setting settings[] = {{"plugins", argc > 1 ? argv[1] : "off"}, {"config", "off"}, {"layers", "check"}};
  if (heddle_context_create(settings, 3, NULL, NULL, &ctx, &err) != HEDDLE_OK) {
    fprintf(stderr, "%s\n", err.text);
    return 1;
  }
  heddle_plugin_info info = {.struct_size = sizeof info};
  heddle_status s = heddle_context_plugin(ctx, 0, &info, &err);
  if (s == HEDDLE_OK && !info.used) printf("refused: %s\n", info.reason);
  for (size_t i = 0; s == HEDDLE_OK && i < heddle_context_device_count(ctx); i++) {
    heddle_device *dev = heddle_context_device(ctx, i);
    s = heddle__device_open(dev, &err);
    if (s == HEDDLE_OK) s = heddle_device_health(dev, &err);
    heddle__device_close(dev);
    printf("%s\n", heddle_device_name(dev));
  }
  heddle_context_release(ctx);
  if (s != HEDDLE_OK) fprintf(stderr, "%s\n", err.text);
  return s != HEDDLE_OK;
}
