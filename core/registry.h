/* core/registry.h: what a context consists of: plugins, each used or refused with its reason, and their devices.
 * The candidates are found while the context is created; core/wanted.c fills a plugin when it is asked for, and what it
 * has filled is read-only from then on, but for what core/device.c and core/trace.c guard. */
#ifndef HEDDLE_CORE_REGISTRY_H
#define HEDDLE_CORE_REGISTRY_H

#include <pthread.h>
#include <sys/types.h>

#include "core/config.h"
#include "core/context.h"
#include "core/trace.h"

struct heddle__layers; /* core/layers/layers.h */

#define HEDDLE__LINKED_IN "linked in"

/* A candidate of the search, and what became of it. */
typedef struct heddle__plugin {
  heddle_context *ctx;
  heddle_plugin_entry_fn entry; /* linked into the program; NULL: a file */
  char *path;                   /* HEDDLE__LINKED_IN for such a one */
  char *manifest;               /* the file that led to it and says its name; NULL where the library was found itself */
  char *real;                   /* path without links, once it is loaded: what is opened; malloc's */
  int64_t size;                 /* of that file, with its time: which file it is for what is kept about it */
  int64_t mtime_ns;
  char *drivers;        /* those that its first try found, a line each, until its devices are listed; or NULL */
  char *abilities;      /* the file that says what its devices can do, where there is one that counts */
  int32_t priority;     /* of its manifest; 0 */
  const char *found_by; /* static, or borrowed from the configuration */
  atomic_bool seen;     /* it was loaded or refused: what follows is final */
  bool untrusted;       /* it is not used because its try failed or could not be made: nothing that it said itself */
  atomic_bool warned;   /* that this changed a list of devices was said */
  char *reason;         /* why it is not used; NULL where it is */
  char name[64];        /* "" before it is known */
  char said[64];        /* what its manifest says that it is */
  dev_t dev;            /* which file it is, by whatever path; 0, 0 where there is none */
  ino_t ino;
  heddle_plugin root; /* over a zeroed one, like tables */
  heddle__tables tables;
  const heddle__tables *use; /* tables, or those of the layers before it */
  struct heddle__layers *layers;
  heddle_host host; /* of this instance; host.ctx is this struct */
  heddle_pinstance *instance;
  bool one_by_one; /* it proposes no regions of several nodes: the setting NAME.regions is 0 */
  char **asked;    /* the settings that it asked for until it was opened */
  size_t n_asked;
  struct heddle__described *described; /* core/described.c: its settings and the host's own under its name */
  size_t n_described;
  bool describes; /* its table lists its settings: there are no others */
  heddle_device **devices;
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
  struct heddle__trace *trace;            /* always there; open or not */
  _Atomic(heddle__attachment *) attached; /* core/context.h */
  heddle__attachment *ranks;              /* executor/ranks.h; NULL. Set before any thread uses the context */
  char *folder;                           /* of libheddle; "" where it is not known */
  char *allowed; /* core/privileged.c: the administrator's list of plugins for privileged processes; or NULL */
  heddle__plugins plugins;
  /* Of core/wanted.c: one thread loads at a time, without the lock, while others wait. */
  pthread_mutex_t lock;
  pthread_cond_t cond;
  bool has_lock, busy;
  pthread_t loader;        /* while busy */
  atomic_bool reported;    /* the log has which plugins are not loaded */
  atomic_bool complete;    /* all plugins were seen: what follows is there, and final */
  heddle_device **devices; /* all of them, plugin by plugin; borrowed from the plugins */
  size_t n_devices;
  heddle_device **defaults; /* the default list, best first; borrowed too */
  size_t n_defaults;
  heddle_context *next_parked;
};

/* core/linked.c: from now on no plugin can be registered; calls add for each that was. The first failure ends it. */
heddle_status heddle__linked_each(heddle_status (*add)(heddle_context *ctx, heddle_plugin_entry_fn entry,
                                                       heddle_error *err),
                                  heddle_context *ctx, heddle_error *err);

/* core/discover.c: appends a candidate for every file that the search finds, in its order; what is wrong already has
 * its reason. */
heddle_status heddle__discover(heddle_context *ctx, heddle_error *err);
/* The folder of the file that holds this code: libheddle, or the program that it is linked into. Freed with
 * heddle__free; NULL where it is not known. */
char *heddle__own_folder(void);

/* core/trust.c: HEDDLE_EABI, with what to do, where others than root and this user may write to the file real (a path
 * without links) or to a folder above it, and the setting plugin_trust does not allow it. plugin_trust fills real, size and
 * mtime_ns of a candidate, and refuses it for that. */
heddle_status heddle__trust(const heddle_context *ctx, const char *real, heddle_error *err);
heddle_status heddle__plugin_trust(heddle__plugin *plugin, heddle_error *err);

/* core/privileged.c: for a privileged process: start reads the administrator's list of plugins, and where there is one drops
 * the variables of the environment that are not known to be harmless; check refuses a candidate, whose real path is known,
 * that is not on it. In other processes both do nothing. */
heddle_status heddle__privileged_start(heddle_context *ctx, heddle_error *err);
heddle_status heddle__privileged_check(heddle__plugin *plugin, heddle_error *err);

/* core/wanted.c: loads what was not loaded yet of the candidates whose devices may be called word, all of them where that is
 * NULL; then devices and defaults are there too. A plugin that is refused is no failure. Any thread; blocks while it or
 * another thread loads. Called from within a plugin's loading (by the application's log function), it does nothing. */
heddle_status heddle__want(heddle_context *ctx, const char *word, size_t length, heddle_error *err);
/* Loads what cannot wait: files whose names do not say what their devices are called, and plugins behind layers. */
heddle_status heddle__want_first(heddle_context *ctx, heddle_error *err);
/* Says once in the log which plugins are left alone, and why. */
void heddle__want_tell(heddle_context *ctx);
/* Whether the devices of a candidate may be called word: by its name, or by its file's before it is loaded. */
bool heddle__may_be(const heddle__plugin *plugin, const char *word, size_t length);

/* core/loader.c: the name that a plugin's file gives it, "" where it has another form; 64 bytes. */
void heddle__file_name(const heddle__plugin *plugin, char *out);
/* Opens the candidate, negotiates, takes its tables, starts an instance and lists its devices. Returns
 * HEDDLE_OK also where the plugin was refused, which sets reason; a failure is one of the host's own memory. */
heddle_status heddle__plugin_load(heddle__plugin *plugin, heddle_error *err);

/* core/settings.c: what a plugin asks for while it is loaded, and a warning of each setting under its name that it did not
 * ask for. One thread at a time. */
void heddle__settings_asked(heddle__plugin *plugin, const char *key);
void heddle__settings_check(heddle__plugin *plugin);
/* Reads the settings that the core applies to every plugin: NAME.regions. HEDDLE_EINVAL for a value that it cannot have. */
heddle_status heddle__settings_common(heddle__plugin *plugin, heddle_error *err);
/* Warns of what was given that neither the library nor a plugin reads; once, when the plugins are known. */
void heddle__settings_warn(const heddle_context *ctx);
void heddle__settings_forget(heddle__plugin *plugin);
/* core/described.c: takes the settings and checks the extensions of a plugin's root table; HEDDLE_EABI with why. key gives
 * the i-th key without the plugin's name, NULL past the end. */
heddle_status heddle__described_take(heddle__plugin *plugin, heddle_error *why);
void heddle__described_forget(heddle__plugin *plugin);
const char *heddle__described_key(const heddle__plugin *plugin, size_t i, bool *of_device);
void heddle__plugin_close(heddle__plugin *plugin); /* ends its instance and frees the struct; takes NULL */

/* Sets the reason for which a candidate is not used; the words are kept. */
heddle_status heddle__plugin_refuse(heddle__plugin *plugin, heddle_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* core/host.c: the table of services, for the entry and the instance of a plugin. */
void heddle__host_init(heddle_host *host, heddle__plugin *plugin);

/* core/device_group.c: does a name of a list mean several devices ("gpu", "gpu:1", "all", "sim:*")? group gives them, none
 * where there are none; *out is freed with heddle__free. among gives the first of some devices that is one of them; n where
 * none is. HEDDLE_EINVAL for what is no name. */
bool heddle__is_group(const char *name, size_t n);
heddle_status heddle__group_of(heddle_context *ctx, const char *name, size_t n, heddle_device ***out, size_t *count,
                               heddle_error *err);
heddle_status heddle__group_among(heddle_context *ctx, const char *name, heddle_device *const *devices, size_t n,
                                  size_t *index, heddle_error *err);

/* core/select.c: has a device the type of a GPU, and does not compute on the host's cores? */
bool heddle__is_gpu(const heddle_device *d);

/* core/select.c: sorts the default list and gives every other device its reason. */
heddle_status heddle__defaults_init(heddle_context *ctx, heddle_error *err);

/* core/left_out.c: warns, once a plugin, where what a list selects (NULL: the default devices) is less because a plugin's try
 * failed or could not be made. */
heddle_status heddle__left_out_warn(heddle_context *ctx, const char *list, heddle_error *err);

/* core/device.c: a device that is not open, and its end. describe fills desc from the plugin and checks it. */
heddle_status heddle__device_create(heddle__plugin *plugin, uint32_t index, heddle_device **out, heddle_error *err);
void heddle__device_release(heddle_device *dev); /* takes NULL */
/* By the cookie that open gave; NULL for one that is not of the present opening. */
void heddle__device_fault_by_cookie(heddle__plugin *plugin, uint64_t cookie, int32_t api_code, const char *text);

#endif
