/* core/device.h: a device as the core holds it: its plugin's tables, its description, the open handle, the sticky fault.
 * Devices live as long as their context; opening is counted. */
#ifndef HEDDLE_CORE_DEVICE_H
#define HEDDLE_CORE_DEVICE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "heddle/device.h"
#include "plugins/common/check/contract.h"

typedef contract_tables heddle__tables; /* read-only after loading */

struct heddle__plugin; /* core/registry.h */

struct heddle_device {
  heddle_context *ctx;
  struct heddle__plugin *plugin;
  const heddle__tables *t;              /* of the plugin, or of the layers put before it */
  heddle_pinstance *instance;           /* what pure functions take as self */
  heddle_pdevice *handle;               /* valid between heddle__device_open and _close */
  uint32_t index;                       /* within the plugin */
  uint32_t ordinal;                     /* within the context */
  heddle_pdevice_desc desc;             /* checked: contract.h */
  char name[72];                        /* "sim:0" */
  uint32_t abilities[HEDDLE_ABILITIES]; /* HEDDLE_ABILITY_*, as the public header has them */
  bool is_default;
  char reason[256]; /* why not default */
  /* the rest belongs to core/device.c */
  void *lock; /* guards opened and handle; a leaf but for device.open, which runs outside of it */
  unsigned opened;
  atomic_int faulted; /* 1 once fault holds the first words */
  heddle_error fault;
  atomic_ullong orphan_bytes; /* memory of hung streams that could not be freed yet */
  uint64_t watchdog_ns;       /* setting watchdog_ms: work that takes longer makes the device lost; 0: none */
  atomic_bool hung;           /* its work was found not to end: later waits for it are short */
};

/* Plugins that declare HEDDLE_DEVICE_EXT have types of their own, from this number on: 2^24 of them, far above DLPack's
 * types, TVM's own and TVM's numbers of remote devices. */
#define HEDDLE__OWN_TYPES INT32_C(0x01000000)

/* core/device_type.c: the number of a device's type, where it is carried with a device: the declared one, but for
 * HEDDLE_DEVICE_EXT heddle_plugin_device_type of the plugin's name. */
int32_t heddle__device_type(int32_t declared, const char *plugin);

static inline bool heddle__is_own_type(int32_t type) {
  return type >= HEDDLE__OWN_TYPES && type < 2 * HEDDLE__OWN_TYPES;
}

/* Does a number that a caller or a graph gave mean devices of a type? kDLExtDev means those of all plugins that declare
 * it. */
static inline bool heddle__is_type(int32_t type, int32_t number) {
  return type == number || (number == HEDDLE_DEVICE_EXT && heddle__is_own_type(type));
}

static inline bool heddle__device_inline(const heddle_device *d) {
  return (d->desc.caps & HEDDLE_CAP_INLINE) != 0;
}

/* How long to wait for work of the device: as asked, or a moment where its work was already found not to end. */
static inline uint64_t heddle__device_patience(const heddle_device *d, uint64_t timeout_ns) {
  const uint64_t moment = UINT64_C(20000000);
  return timeout_ns > moment && atomic_load_explicit(&d->hung, memory_order_relaxed) ? moment : timeout_ns;
}

/* Has the device handles of parts of a buffer? */
static inline bool heddle__device_has_views(const heddle_device *d) {
  return (d->desc.caps & HEDDLE_CAP_VIEWS) != 0 && d->t->memory.view != NULL;
}

/* Opens the device, or counts one more opener. Thread-safe; may block in the driver. close takes what open gave; the
 * last one closes the plugin's device. */
heddle_status heddle__device_open(heddle_device *dev, heddle_error *err);
void heddle__device_close(heddle_device *dev);

/* Any thread, one atomic load when all is well. Gives the first fault's words. */
heddle_status heddle__device_check(heddle_device *dev, heddle_error *err);

/* Keeps the first fault. Called by the host table's device_fault and wherever a call returned HEDDLE_EDEVICE. */
void heddle__device_fault(heddle_device *dev, int32_t api_code, const char *text);

/* Has the plugin end the work of a device that hangs or is lost, once for each opening. true: nothing accesses the device's
 * memory any more, and the device is lost. false: the plugin cannot, or work is left. Any thread; blocks briefly. */
bool heddle__device_reset(heddle_device *dev);

/* Waits until nothing runs in a stream any more, and gives the first failure of its work. A sync may fail of itself
 * without having waited, so after a failure it is asked again, and the device in the end. *quiet false: something may
 * still run. Notes a lost device. One thread at a time per stream; blocks, about timeout_ns. */
heddle_status heddle__device_settle(heddle_device *dev, heddle_pstream *stream, uint64_t timeout_ns, bool *quiet,
                                    heddle_error *err);

#endif
