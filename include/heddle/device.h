/* heddle/device.h: contexts, and the devices that they found.
 * A context is one configuration, the plugins that it loaded and their devices; nothing in Heddle is global to the
 * process but the plugins' code, which is never unloaded. */
#ifndef HEDDLE_DEVICE_H
#define HEDDLE_DEVICE_H

#include "heddle/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct heddle_context heddle_context;
typedef struct heddle_device heddle_device;

/* A setting by key, as it stands in the configuration file with dots between levels: "devices", "plugins",
 * "plugin_path", "log", "threads", "spin_us", "limit.graph_bytes", "limit.params_bytes", "layers", "sim.delay_us". The
 * variable of a key is HEDDLE_ and the key in capitals with '_' for '.'. */
typedef struct heddle_setting {
  const char *key;
  const char *value;
} heddle_setting;

/* Where the log goes: one line without newline. Called from any thread, with no lock held. */
typedef void (*heddle_log_fn)(void *user, int32_t level, const char *component, const char *text);

struct heddle_plugin; /* heddle/plugin.h */
struct heddle_host;
/* The entry of a plugin: its heddle_plugin_entry, under another name where several are linked into one program. */
typedef const struct heddle_plugin *(*heddle_plugin_entry_fn)(const struct heddle_host *host, heddle_error *err);

/* Adds a plugin that is linked into the program or into a library of its own, instead of being found as a file. Contexts
 * find it like any other, before files, and list it with the path and the rule "linked in"; a file with the same plugin
 * name is then refused as found second. The setting "plugins" chooses among files only. The entry is called when the
 * plugin's devices are first asked for, once a context; it follows heddle/plugin.h. It is not tried in a process of its own
 * (settings "probe", "plugin_trust"), since its code is the program's own.
 *
 * Call it before the first context is created, heddle_context_process included: HEDDLE_EBUSY afterwards. The same entry
 * again changes nothing. There is no way to take it back; the code must stay mapped until the process ends. HEDDLE_EINVAL
 * where entry is NULL, HEDDLE_ELIMIT after 64 of them. Any thread; does not block. */
HEDDLE_API heddle_status heddle_plugin_register(heddle_plugin_entry_fn entry, heddle_error *err);

/* Creates a context: reads the configuration (settings of the call, then variables, then the file, then defaults),
 * and finds plugins. A plugin is loaded when its devices are asked for by name, all of them by the calls that list what
 * there is and by the default devices; no device is opened by that. Before it is first loaded it is tried in a process of
 * its own, whose answer is kept (settings "probe", "probe.timeout_ms", "probe.cache_dir", "probe.retry"), and files that
 * others may write to are refused ("plugin_trust"); a privileged process (set-user-ID) loads only what the administrator
 * lists, and where there is such a list this call drops variables from the environment, so that it comes before threads are
 * started; docs/probing.md. A plugin that cannot be used is not an error: it is
 * listed with its reason. log may be NULL: lines of level warn and above, or as the setting "log" says, go to stderr.
 * *out has one reference. May block in drivers, and for as long as probe.timeout_ms says for each plugin that is tried. Any
 * thread. HEDDLE_EINVAL for a malformed setting, HEDDLE_EFORMAT for a malformed configuration file, naming file and line,
 * HEDDLE_EFORK in a process that was forked from one that had opened a device. */
HEDDLE_API heddle_status heddle_context_create(const heddle_setting *settings, size_t n_settings, heddle_log_fn log,
                                               void *log_user, heddle_context **out, heddle_error *err);

/* The context of the process: made, without settings of a call, when it is first asked for, and kept until the process
 * ends. Modules and functions (heddle/function.h), TVM's C API and the bindings for other languages use it. *out has a
 * reference of the caller's. Any thread. Fails as heddle_context_create does; the next call then tries again. */
HEDDLE_API heddle_status heddle_context_process(heddle_context **out, heddle_error *err);

/* Counts references. Models and executors hold one. The last release closes devices and instances; it waits for work
 * at most a few seconds. NULL is taken. Any thread. */
HEDDLE_API heddle_context *heddle_context_retain(heddle_context *ctx);
HEDDLE_API void heddle_context_release(heddle_context *ctx);

/* The value of a setting and where it came from ("call", "HEDDLE_DEVICES", the file's path, "default"), both borrowed
 * for the life of the context; HEDDLE_ENOTFOUND where nobody set it and it has no default. origin may be NULL. */
HEDDLE_API heddle_status heddle_context_setting(heddle_context *ctx, const char *key, const char **value,
                                                const char **origin, heddle_error *err);

/* The keys of all settings that somebody gave or that have a default, by position, each once; NULL past the end.
 * Borrowed for the life of the context. */
HEDDLE_API const char *heddle_context_setting_key(heddle_context *ctx, size_t i);

/* A candidate plugin: used, or refused with the reason in words. Strings are borrowed from the context. */
typedef struct heddle_plugin_info {
  size_t struct_size;
  const char *name; /* "" where it was refused before its name was known */
  const char *path;
  const char *found_by; /* which rule of the search led to it */
  const char *reason;   /* "" where it is used */
  const char *build;
  uint32_t abi_major;
  uint32_t abi_minor;
  uint32_t device_count;
  uint32_t used;        /* 1 or 0 */
  const char *manifest; /* the file that describes it; "" where the library was found itself */
} heddle_plugin_info;

HEDDLE_API size_t heddle_context_plugin_count(heddle_context *ctx);
HEDDLE_API heddle_status heddle_context_plugin(heddle_context *ctx, size_t i, heddle_plugin_info *out,
                                               heddle_error *err);

/* All devices of all plugins, in the order of the search; borrowed for the life of the context. */
HEDDLE_API size_t heddle_context_device_count(heddle_context *ctx);
HEDDLE_API heddle_device *heddle_context_device(heddle_context *ctx, size_t i);

/* A device by name: "cpu" (the first of the plugin), "sim:1". HEDDLE_ENODEV with what there is, and why the rest is
 * not. */
HEDDLE_API heddle_status heddle_context_find_device(heddle_context *ctx, const char *name, heddle_device **out,
                                                    heddle_error *err);

/* The device that DLPack, TVM and numpy's kin write as (type, number): of that DLPack type, the number-th of its plugin.
 * Where two plugins have devices of one type, those of the setting "devices" come first. HEDDLE_ENODEV with what there is,
 * each with its two numbers. Any thread. */
HEDDLE_API heddle_status heddle_context_dlpack_device(heddle_context *ctx, int32_t type, int32_t number,
                                                      heddle_device **out, heddle_error *err);

/* Resolves a list such as "vulkan:0,cuda?,cpu" (order of preference; '?' marks what may be missing), or with NULL the
 * setting "devices", or without one the default: real accelerators first, one API for each physical device, then cpu.
 * Writes at most cap devices (borrowed) and the number that there are. origin, which may be NULL, gets where the list
 * came from. A required device that is missing is HEDDLE_ENODEV. */
HEDDLE_API heddle_status heddle_context_select(heddle_context *ctx, const char *list, heddle_device **out, size_t cap,
                                               size_t *n, const char **origin, heddle_error *err);

/* What such a list leaves out of devices that it would have taken, or may have taken by default, because the plugin's try in a
 * process of its own failed or could not be made (docs/probing.md): a sentence a line, "" where there is nothing. The log has
 * each as a warning when a list is resolved. *out is freed with heddle_free. Loads what resolving the list has loaded; any
 * thread. HEDDLE_EINVAL, HEDDLE_ENOMEM, HEDDLE_EFORK. */
HEDDLE_API heddle_status heddle_context_left_out(heddle_context *ctx, const char *list, char **out, heddle_error *err);

/* What heddle check-plugin found out about a device with its present driver: positions in heddle_device_info.abilities,
 * and what stands there. What was never tried is used as the plugin says, but for waits on the device; what failed is not
 * used. */
enum { HEDDLE_ABILITY_FENCE_WAIT = 0, HEDDLE_ABILITY_PEER, HEDDLE_ABILITY_IMPORT_HOST, HEDDLE_ABILITIES };
enum { HEDDLE_ABILITY_UNTRIED = 0, HEDDLE_ABILITY_WORKS, HEDDLE_ABILITY_FAILS };

/* What is known of a device. Strings are borrowed from the device. */
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
  int32_t type;    /* DLPack's device type */
  uint32_t index;  /* within its plugin */
  uint32_t compute_units;
  uint32_t is_default;                  /* 1: in the default list */
  uint32_t abilities[HEDDLE_ABILITIES]; /* HEDDLE_ABILITY_* by position */
  uint32_t reserved;
  const char *abilities_from; /* the file that says so; "" where there is none */
} heddle_device_info;

HEDDLE_API heddle_status heddle_device_get_info(heddle_device *dev, heddle_device_info *out, heddle_error *err);
HEDDLE_API const char *heddle_device_name(heddle_device *dev);

/* HEDDLE_OK, or HEDDLE_EDEVICE with the first words of a device that was lost since it was opened. */
HEDDLE_API heddle_status heddle_device_health(heddle_device *dev, heddle_error *err);

/* Opens a lost device again once nothing uses it: HEDDLE_EBUSY while an executor or a model does. */
HEDDLE_API heddle_status heddle_device_reopen(heddle_device *dev, heddle_error *err);

#ifdef __cplusplus
}
#endif

#endif
