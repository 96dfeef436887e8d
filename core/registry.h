/* core/registry.h: what a context consists of: plugins, each used or refused with its reason, and their devices.
 * Filled while the context is created and read-only from then on, but for what core/device.c and core/trace.c guard. */
#ifndef HEDDLE_CORE_REGISTRY_H
#define HEDDLE_CORE_REGISTRY_H

#include <sys/types.h>

#include "core/config.h"
#include "core/context.h"
#include "core/trace.h"

struct heddle__layers; /* core/layers/layers.h */

/* A candidate of the search, and what became of it. */
typedef struct heddle__plugin {
  heddle_context *ctx;
  char *path;
  const char *found_by; /* static, or borrowed from the configuration */
  char *reason;         /* why it is not used; NULL where it is */
  char name[64];        /* "" before it is known */
  dev_t dev;            /* which file it is, by whatever path; 0, 0 where there is none */
  ino_t ino;
  heddle_plugin root; /* over a zeroed one, like tables */
  heddle__tables tables;
  const heddle__tables *use; /* tables, or those of the layers before it */
  struct heddle__layers *layers;
  heddle_host host; /* of this instance; host.ctx is this struct */
  heddle_pinstance *instance;
  uint32_t n_devices;
} heddle__plugin;

typedef struct heddle__plugins {
  heddle__plugin **data;
  size_t count;
} heddle__plugins;

struct heddle_context {
  atomic_int references;
  atomic_bool closed;    /* parked for good: what plugins still call is dropped */
  atomic_bool left_over; /* a device could not be closed cleanly; memory that it may touch is kept */
  heddle__log log;
  heddle__config *config;
  heddle__pool *pool;
  struct heddle__trace *trace; /* always there; open or not */
  heddle__plugins plugins;
  heddle_device **devices; /* all of them, plugin by plugin */
  size_t n_devices;
  heddle_device **defaults; /* the default list, best first; borrowed from devices */
  size_t n_defaults;
  heddle_context *next_parked;
};

/* core/discover.c: appends a candidate for every file that the search finds, in its order; what is wrong already has
 * its reason. */
heddle_status heddle__discover(heddle_context *ctx, heddle_error *err);
/* The folder of the file that holds this code: libheddle, or the program that it is linked into. Freed with
 * heddle__free; NULL where it is not known. */
char *heddle__own_folder(void);

/* core/loader.c: opens the candidate, negotiates, takes its tables, starts an instance and lists its devices. Returns
 * HEDDLE_OK also where the plugin was refused, which sets reason; a failure is one of the host's own memory. */
heddle_status heddle__plugin_load(heddle__plugin *plugin, heddle_error *err);
void heddle__plugin_close(heddle__plugin *plugin); /* ends its instance and frees the struct; takes NULL */

/* Sets the reason for which a candidate is not used; the words are kept. */
heddle_status heddle__plugin_refuse(heddle__plugin *plugin, heddle_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* core/table.c: takes a foreign table over a zeroed one of ours and checks what must be there. size_bytes is the width
 * of its struct_size, 4 or 8. false where struct_size makes no sense. */
bool heddle__table_take(void *dst, size_t dst_bytes, const void *src, size_t size_bytes);
heddle_status heddle__tables_take(const heddle_plugin *root, heddle__tables *out, heddle_error *err);
/* What the capabilities of a device require of its plugin's tables. */
heddle_status heddle__tables_fit(const heddle__tables *t, const heddle_pdevice_desc *desc, heddle_error *err);

/* core/host.c: the table of services, for the entry and the instance of a plugin. */
void heddle__host_init(heddle_host *host, heddle__plugin *plugin);

/* core/select.c: sorts the default list and gives every other device its reason. */
heddle_status heddle__defaults_init(heddle_context *ctx, heddle_error *err);

/* core/device.c: a device that is not open, and its end. describe fills desc from the plugin and checks it. */
heddle_status heddle__device_create(heddle__plugin *plugin, uint32_t index, heddle_device **out, heddle_error *err);
void heddle__device_release(heddle_device *dev); /* takes NULL */
/* By the cookie that open gave; NULL for one that is not of the present opening. */
void heddle__device_fault_by_cookie(heddle__plugin *plugin, uint64_t cookie, int32_t api_code, const char *text);

#endif
