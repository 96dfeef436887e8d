/* core/config.h: settings by dotted key, each with where it came from: the call, a variable, the file, a default.
 * A configuration is read once, when its context is created, and immutable from then on, but for the defaults that
 * plugins ask for: any thread. */
#ifndef HEDDLE_CORE_CONFIG_H
#define HEDDLE_CORE_CONFIG_H

#include <stdbool.h>

#include "core/log.h"

typedef struct heddle__config heddle__config;

/* Takes a copy of the call's settings, of the HEDDLE_* variables (none in a privileged process) and of the
 * configuration file. HEDDLE_EINVAL for a setting without key or value or with an odd key; HEDDLE_EIO where the file
 * that was named cannot be read; HEDDLE_EFORMAT, with file and line, where it is malformed. May block on the file. */
heddle_status heddle__config_create(const heddle_setting *settings, size_t n, heddle__config **out, heddle_error *err);
void heddle__config_release(heddle__config *config); /* takes NULL */

/* The value that wins, and its origin; both borrowed. false where there is none. origin may be NULL. */
bool heddle__config_get(const heddle__config *config, const char *key, const char **value, const char **origin);

/* Gives the setting NAME.cache_dir its default, a folder of that name in the user's cache folder; false where the
 * user has none, or memory or what was reserved is out. One thread at a time, others may read: for plugins that ask for
 * it while they are loaded, since this is the one default that they cannot make themselves: they read no environment. */
bool heddle__config_cache_dir(heddle__config *config, const char *name);

/* Makes room for so many of these; once, before the first. */
heddle_status heddle__config_reserve(heddle__config *config, size_t count, heddle_error *err);

/* Calls each with (rest of the key after prefix, value) for every key under prefix ("sim.1."), once a key. */
typedef heddle_status (*heddle__config_fn)(void *user, const char *rest, const char *value, heddle_error *err);
heddle_status heddle__config_each(const heddle__config *config, const char *prefix, heddle__config_fn each, void *user,
                                  heddle_error *err);

/* Whether a first word is a plugin's name. */
typedef bool (*heddle__config_known)(void *user, const char *word, size_t length);

/* Lists the keys of all that was given or has a default, each once: to be called once, when the plugins are known. */
heddle_status heddle__config_list(heddle__config *config, heddle__config_known known, void *user, heddle_error *err);

/* The i-th of them; NULL past the end. */
const char *heddle__config_key(const heddle__config *config, size_t i);

/* Calls each with every key that was given: from is the file's path, or "". A variable's key is its name. */
typedef void (*heddle__config_given_fn)(void *user, const char *key, bool is_variable, const char *from);
void heddle__config_given(const heddle__config *config, heddle__config_given_fn each, void *user);

/* The variable of a key: "sim.delay_us" is HEDDLE_SIM_DELAY_US. false where it does not fit. */
bool heddle__config_variable(const char *key, char *name, size_t bytes);

/* core/privileged.c: whether this process has other rights than its caller (AT_SECURE). */
bool heddle__is_privileged(void);

/* True for "0", "off" and "none". */
bool heddle__config_is_off(const char *value);

#endif
