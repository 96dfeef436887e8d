/* conformance/needs.c: what makes a case run that a device skips: what its plugin would have to offer, or what the command
 * line would have to say. By cases, since a skip's own text only says what is missing. */
#include <fnmatch.h>
#include <stddef.h>

#include "conformance/check.h"

static const struct {
  const char *cases, *needs;
} rows[] = {
    {"root/two_instances", "a driver that allows a second instance"},
    {"device/both", "a second device: other hardware, or a setting of the plugin (--set)"},
    {"device/second", "a plugin that opens a device twice"},
    {"device/memory_now", "device.memory_now"},
    {"settings/device", "heddle_plugin.settings with a setting that has HEDDLE_SETTING_DEVICE"},
    {"settings/values",
     "heddle_plugin.settings with a switch, a number or a word that open_instance or device.open reads"},
    {"settings/*", "heddle_plugin.settings"},
    {"device/*", "device.query with the keys LIVE_*"},
    {"memory/flush-range", "memory.flush; devices with HEDDLE_CAP_NONCOHERENT need it"},
    {"memory/invalidate-range", "memory.invalidate; devices with HEDDLE_CAP_NONCOHERENT need it"},
    {"memory/unified", "HEDDLE_CAP_UNIFIED, with memory.alloc of kind UNIFIED"},
    {"memory/view*", "memory.view, with HEDDLE_CAP_VIEWS"},
    {"memory/import*", "memory.import_host, with import_alignment in device_describe"},
    {"memory/native", "memory.native"},
    {"memory/adopt*", "memory.native and memory.adopt"},
    {"memory/limit", "max_buffer_bytes in device_describe"},
    {"memory/counts", "device.query with the keys LIVE_BUFFERS and LIVE_BYTES"},
    {"memory/*", "PINNED memory, with memory.map"},
    {"copy/complete", "HEDDLE_CAP_INLINE: it is for inline devices alone"},
    {"copy/*peer*", "copy.can_peer and copy.peer, and a second device"},
    {"copy/host-of-other", "a second device of the same event domain"},
    {"events/across-devices", "a second device of the same event domain"},
    {"events/failure",
     "fence.wait, or the hook fail_on_fill (plugin-guide.md): with one of them the kit makes work fail"},
    {"events/counts", "device.query with the key LIVE_OBJECTS"},
    {"streams/adopt*", "stream.adopt, with the hook adopt_own (plugin-guide.md)"},
    {"streams/full", "fence.wait, with HEDDLE_CAP_WAIT_BEFORE_SIGNAL: with them the kit holds a stream"},
    {"streams/of-copy-wait", "fence.wait, with HEDDLE_CAP_WAIT_BEFORE_SIGNAL: with them the kit holds a stream"},
    {"streams/of-copy-failed*",
     "fence.wait, or the hook fail_on_fill (plugin-guide.md): with one of them the kit makes work fail"},
    {"streams/of-copy-run", "op.query that accepts Relu or another small region"},
    {"streams/of-copy-*", "PINNED memory, with memory.map; a device that is not inline"},
    {"streams/counts", "device.query with the key LIVE_OBJECTS"},
    {"fences/required", "a device that is not inline"},
    {"fences/held-*", "fence.wait, with HEDDLE_CAP_WAIT_BEFORE_SIGNAL: with them the kit holds a stream"},
    {"fences/wait-*", "fence.wait; for waits before the signal HEDDLE_CAP_WAIT_BEFORE_SIGNAL too"},
    {"fences/failed-*",
     "fence.wait, or the hook fail_on_fill (plugin-guide.md): with one of them the kit makes work fail"},
    {"fences/fail*", "fence.wait: with it the kit makes work fail"},
    {"fences/*", "a device that is not inline"},
    {"calls/run-*", "op.query that accepts Relu or another small region; to hold the device, fence.wait with "
                    "HEDDLE_CAP_WAIT_BEFORE_SIGNAL"},
    {"calls/*",
     "fence.wait with HEDDLE_CAP_WAIT_BEFORE_SIGNAL, so that the kit can hold a stream; or a device on which "
     "copies take longer"},
    {"capture/*", "the table capture"},
    {"timing/recorded", "the tables timing and capture"},
    {"timing/*", "the table timing"},
    {"external/required", "the table external"},
    {"external/*", "the table external, with memory that the device exports"},
    {"health/reset", "device.reset"},
    {"health/lost*",
     "the hook lose_on_fill (plugin-guide.md), a setting that loses the device at work (--set), or device.reset"},
    {"threads/devices", "a second device"},
    {"threads/launches", "op.query that accepts Relu or another small region"},
    {"leaks/graphs", "the table capture"},
    {"leaks/timers", "the table timing"},
    {"leaks/views", "memory.view, with HEDDLE_CAP_VIEWS"},
    {"leaks/launches", "op.query that accepts Relu or another small region"},
    {"query/partition", "op.partition that proposes regions"},
    {"query/list", "op.list"},
    {"query/*", "the table op"},
    {"numerics/resize*", "op.resize, with HEDDLE_OFFER_RESIZES in an offer"},
    {"numerics/kept", "op.query that accepts Relu, Add, MatMul or another common operator"},
    {"numerics/fast", "op.query that accepts a float32 region of the operator with HEDDLE_REGION_FAST"},
    {"numerics/*", "op.query that accepts a region of the operator"},
    {"regions/*", "op.query that accepts each operator of a graph alone"},
    {"layouts/offers", "op.query with more than one offer for a region"},
    {"layouts/*", "the table layout, and an offer with a layout of it"},
    {"modules/absent", "a format of modules that the kit has a module of"},
    {"modules/*", "the table module"},
    {"process/globals", "a kit that is built without a sanitizer"},
    {"process/children", "a /proc that lists the processes"},
};

const char *check_needs(const kit_case *c) {
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    if (fnmatch(rows[i].cases, c->name, 0) == 0) return rows[i].needs;
  return (c->flags & KIT_SECOND) != 0       ? "a second device: other hardware, or a setting of the plugin (--set)"
         : (c->flags & KIT_NOT_INLINE) != 0 ? "a device that is not inline"
                                            : NULL;
}
