/* heddle/device.h: contexts, plugins and devices.
 * A context is one configuration with the plugins that it loaded and their devices. Heddle has no other global state
 * than the plugins' code, which is never unloaded. Any thread may call these functions, concurrently. Those that load
 * plugins or open devices may block in drivers; the others do not block. HEDDLE_EINVAL where an object or a place for a
 * result is NULL, or where struct_size of a result is not set. HEDDLE_EFORK in a process that was forked from one that
 * had opened a device. In the whole API err may be NULL. */
#ifndef HEDDLE_DEVICE_H
#define HEDDLE_DEVICE_H

#include "heddle/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct heddle_context heddle_context;
typedef struct heddle_device heddle_device;

/* A setting by key. The key is the path in the configuration file with dots between levels: "devices", "plugins",
 * "plugin_path", "log", "threads", "spin_us", "limit.graph_bytes", "limit.params_bytes", "layers", "sim.delay_us". The
 * environment variable of a key is HEDDLE_ and the key in capitals with '_' for '.'. */
typedef struct heddle_setting {
  const char *key;
  const char *value;
} heddle_setting;

/* Receives the log, one line without newline per call. level is HEDDLE_LOG_* of heddle/plugin.h. Called from any
 * thread, with no lock held. */
typedef void (*heddle_log_fn)(void *user, int32_t level, const char *component, const char *text);

struct heddle_plugin; /* heddle/plugin.h */
struct heddle_host;
/* The entry of a plugin: its heddle_plugin_entry, under another name where several plugins are linked into one
 * program. */
typedef const struct heddle_plugin *(*heddle_plugin_entry_fn)(const struct heddle_host *host, heddle_error *err);

/* Registers a plugin that is linked into the program or into a library of the program, instead of found as a file.
 * Contexts find it before plugin files and list it with the path and the rule "linked in". A file with the same plugin
 * name is refused as a duplicate. The setting "plugins" selects among files only. The entry follows heddle/plugin.h.
 * Each context calls it once, when the plugin's devices are first needed. The plugin is not probed in a separate
 * process (settings "probe", "plugin_trust"), because its code is the program's own.
 *
 * Call this before the first context is created (by heddle_context_process too); afterwards it returns HEDDLE_EBUSY.
 * Registering the same entry again has no effect. A plugin cannot be unregistered; its code must stay mapped until the
 * process ends. HEDDLE_EINVAL where entry is NULL, HEDDLE_ELIMIT after 64 entries. Any thread; does not block. */
HEDDLE_API heddle_status heddle_plugin_register(heddle_plugin_entry_fn entry, heddle_error *err);

/* Creates a context: reads the configuration (the call's settings first, then variables, then the file, then defaults)
 * and finds plugins. A plugin is loaded when its devices are requested by name. Calls that list plugins or devices, and
 * the selection of default devices, load all plugins. Loading opens no device. Before a plugin is loaded for the first
 * time, it is probed in a separate process, and the result is cached (settings "probe", "probe.timeout_ms",
 * "probe.cache_dir", "probe.retry"). Files that other users may write to are refused ("plugin_trust"). A privileged
 * process (set-user-ID) loads only the plugins that the administrator lists. Where there is such a list, this call
 * removes variables from the environment, so call it before starting threads (docs/probing.md). An unusable plugin is
 * not an error: it is listed with its reason.
 * log may be NULL: lines of level warn and above, or as the setting "log" specifies, then go to stderr. settings may be
 * NULL where n_settings is 0. *out has one reference. May block in drivers, and up to probe.timeout_ms for each plugin
 * that is probed. Any thread. HEDDLE_EINVAL for a malformed setting, HEDDLE_EFORMAT for a malformed configuration file,
 * with file and line in the message, HEDDLE_EFORK in a process that was forked from one that had opened a device. */
HEDDLE_API heddle_status heddle_context_create(const heddle_setting *settings, size_t n_settings, heddle_log_fn log,
                                               void *log_user, heddle_context **out, heddle_error *err);

/* Returns the context of the process. The first call creates it, without settings of a call; it is kept until the
 * process ends. Modules and functions (heddle/function.h), TVM's C API and the bindings for other languages use it.
 * *out has a reference that the caller owns. Any thread. Blocks and fails as heddle_context_create does; after a
 * failure the next call tries again. */
HEDDLE_API heddle_status heddle_context_process(heddle_context **out, heddle_error *err);

/* Retain and release references. Models and executors hold one. The last release closes devices and instances; it waits
 * for work at most a few seconds. NULL is accepted. Any thread. */
HEDDLE_API heddle_context *heddle_context_retain(heddle_context *ctx);
HEDDLE_API void heddle_context_release(heddle_context *ctx);

/* Returns the value of a setting and its origin ("call", "HEDDLE_DEVICES", the file's path, "default"). Both are
 * borrowed for the life of the context; origin may be NULL. The key PLUGIN.cache_dir loads that plugin, which knows its
 * default. HEDDLE_ENOTFOUND where the setting is not set and has no default. */
HEDDLE_API heddle_status heddle_context_setting(heddle_context *ctx, const char *key, const char **value,
                                                const char **origin, heddle_error *err);

/* Returns the key of the i-th setting that has a value or a default, each once; NULL past the end. Loads all plugins.
 * Borrowed for the life of the context. */
HEDDLE_API const char *heddle_context_setting_key(heddle_context *ctx, size_t i);

/* A setting that a plugin has, as the plugin describes it. Strings are borrowed from the context. Set struct_size. */
typedef struct heddle_setting_info {
  size_t struct_size;
  const char *key;           /* "sim.delay_us" */
  const char *type;          /* "switch", "number", "word", "text" or "path" */
  const char *default_value; /* "" where there is none */
  const char *values;        /* the values of a word, with commas between; else "" */
  const char *help;          /* one line */
  uint64_t low;              /* of a number */
  uint64_t high;
  uint32_t per_device; /* 1: can be given for one device ("sim.1.delay_us"); or 0 */
  uint32_t reserved;
} heddle_setting_info;

/* The i-th setting of the plugins whose table was read, used or not: plugin by plugin, with those that the library
 * itself reads for each plugin last. Plugins of an ABI before 1.2 describe none of their own. Loads all plugins and may
 * block in drivers. HEDDLE_ENOTFOUND past the end. */
HEDDLE_API heddle_status heddle_context_described(heddle_context *ctx, size_t i, heddle_setting_info *out,
                                                  heddle_error *err);

/* A plugin candidate: used, or refused with a reason. Strings are borrowed from the context. Set struct_size. */
typedef struct heddle_plugin_info {
  size_t struct_size;
  const char *name; /* "" where it was refused before its name was known */
  const char *path;
  const char *found_by; /* the search rule that found it */
  const char *reason;   /* why it was refused; "" where it is used */
  const char *build;
  uint32_t abi_major;
  uint32_t abi_minor;
  uint32_t device_count;
  uint32_t used;        /* 1 or 0 */
  const char *manifest; /* the manifest file that describes it; "" where the library itself was found */
} heddle_plugin_info;

/* The number of plugin candidates, and the i-th of them. Set out->struct_size. heddle_context_plugin loads all plugins
 * and may block in drivers. HEDDLE_EINVAL past the end. */
HEDDLE_API size_t heddle_context_plugin_count(heddle_context *ctx);
HEDDLE_API heddle_status heddle_context_plugin(heddle_context *ctx, size_t i, heddle_plugin_info *out,
                                               heddle_error *err);

/* All devices of all plugins, in search order. Loads all plugins and may block in drivers. heddle_context_device
 * returns NULL past the end. Devices are borrowed for the life of the context. */
HEDDLE_API size_t heddle_context_device_count(heddle_context *ctx);
HEDDLE_API heddle_device *heddle_context_device(heddle_context *ctx, size_t i);

/* Finds a device by name: "cpu" (the first of the plugin), "sim:1", "gpu" (the first GPU). *out is borrowed for the life of the context. Loads
 * the plugins that may have it, and may block in drivers. HEDDLE_ENODEV where there is no such device; the message
 * lists the devices that exist, and why the others are not available. */
HEDDLE_API heddle_status heddle_context_find_device(heddle_context *ctx, const char *name, heddle_device **out,
                                                    heddle_error *err);

/* The device type of a plugin's devices where the plugin declares HEDDLE_DEVICE_EXT: a number from 0x01000000 to
 * 0x01ffffff that depends only on the plugin's name. DLPack structs, TVM's devices and heddle_device_info carry it, so that
 * devices of two plugins never have the same type and number: of two plugins whose names give one number, the second is
 * refused. docs/dlpack.md has the rule. 0 for NULL and "". Any thread. */
HEDDLE_API int32_t heddle_plugin_device_type(const char *plugin);

/* Finds the device that DLPack, TVM and numpy-like libraries identify as (type, number): the device of that type
 * with that index within its plugin. Where two plugins have devices of one type, those of the setting "devices" take
 * precedence. kDLExtDev (12) means the plugins that declare it. *out is borrowed. HEDDLE_EINVAL where the type is
 * kDLExtDev and two plugins still have such a device; HEDDLE_ENODEV where there is none; the message lists the devices
 * that exist. Any thread. */
HEDDLE_API heddle_status heddle_context_dlpack_device(heddle_context *ctx, int32_t type, int32_t number,
                                                      heddle_device **out, heddle_error *err);

/* Resolves a list such as "vulkan:0,cuda?,cpu" (in order of preference; '?' marks an optional device). "gpu", "gpu:1",
 * "all" and patterns such as "opencl:*" name several devices (docs/placement.md). With list NULL
 * it resolves the setting "devices", or without one the default: real accelerators first, one API for each physical
 * device, then cpu. Writes at most cap devices (borrowed) to out and the total number to *n. origin, which may be NULL,
 * receives the origin of the list. HEDDLE_ENODEV where a required device is missing or the list yields no device. */
HEDDLE_API heddle_status heddle_context_select(heddle_context *ctx, const char *list, heddle_device **out, size_t cap,
                                               size_t *n, const char **origin, heddle_error *err);

/* Reports the devices that such a list omits: optional devices that are missing, with the reason, and default devices
 * whose plugin's probe in a separate process failed or could not run (docs/probing.md). One sentence per line; "" where
 * nothing is omitted. Where a probe is the reason, the log has a warning when the list is resolved. *out is freed with
 * heddle_free. Loads the same plugins as resolving the list. Any thread. HEDDLE_EINVAL, HEDDLE_ENOMEM, HEDDLE_EFORK. */
HEDDLE_API heddle_status heddle_context_left_out(heddle_context *ctx, const char *list, char **out, heddle_error *err);

/* Results of heddle check-plugin for a device with its present driver: the positions in heddle_device_info.abilities,
 * and the values there. An ability that was never tested is used as the plugin reports it, except for waits on the
 * device. A failed ability is not used. */
enum { HEDDLE_ABILITY_FENCE_WAIT = 0, HEDDLE_ABILITY_PEER, HEDDLE_ABILITY_IMPORT_HOST, HEDDLE_ABILITIES };
enum { HEDDLE_ABILITY_UNTRIED = 0, HEDDLE_ABILITY_WORKS, HEDDLE_ABILITY_FAILS };

/* Properties of a device. Strings are borrowed from the device. Set struct_size. */
typedef struct heddle_device_info {
  size_t struct_size;
  const char *name;    /* "sim:0" */
  const char *plugin;  /* "sim" */
  const char *product; /* the vendor's name */
  const char *driver;
  const char *reason; /* why it is not chosen by default; "" where it is */
  uint64_t caps;      /* HEDDLE_CAP_* of plugin.h */
  uint64_t memory_bytes;
  uint64_t max_buffer_bytes;
  uint64_t alignment;
  uint8_t uuid[16];
  uint32_t pci[4]; /* domain, bus, device, function; 0xffffffff where there is none */
  int32_t type;    /* DLPack's device type; for HEDDLE_DEVICE_EXT heddle_plugin_device_type of the plugin */
  uint32_t index;  /* within its plugin */
  uint32_t compute_units;
  uint32_t is_default;                  /* 1: in the default list */
  uint32_t abilities[HEDDLE_ABILITIES]; /* HEDDLE_ABILITY_* by position */
  uint32_t reserved;
  const char *abilities_from; /* the file with these results; "" where there is none */
} heddle_device_info;

/* The properties and the name ("sim:0") of a device. heddle_device_get_info loads all plugins, may block in drivers,
 * and opens no device. Strings are borrowed from the device. */
HEDDLE_API heddle_status heddle_device_get_info(heddle_device *dev, heddle_device_info *out, heddle_error *err);
HEDDLE_API const char *heddle_device_name(heddle_device *dev);

/* HEDDLE_OK, or HEDDLE_EDEVICE with the first error text of a device that was lost since it was opened. Asks the driver
 * where the device is open, and may block in it. */
HEDDLE_API heddle_status heddle_device_health(heddle_device *dev, heddle_error *err);

/* Opens a lost device again when it is no longer in use, so that new executors can use it. May block in the driver.
 * HEDDLE_EBUSY while an executor or a model uses it; HEDDLE_EDEVICE, or another status of the plugin, where the device
 * cannot be opened. */
HEDDLE_API heddle_status heddle_device_reopen(heddle_device *dev, heddle_error *err);

#ifdef __cplusplus
}
#endif

#endif
