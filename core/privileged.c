/* core/privileged.c: a process that has other rights than its caller (set-user-ID, set-group-ID, file capabilities). Code that
 * it loads runs with these rights, and vendors' libraries obey variables of the caller's. So it loads the plugins only that
 * the administrator lists, and before the first of them it drops the variables that are not known to be harmless. */
#define _DEFAULT_SOURCE /* environ, realpath, unsetenv */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>

#include "core/alloc.h"
#include "core/config_file.h"
#include "core/error.h"
#include "core/registry.h"

#define KEY "privileged.plugins"

extern char **environ;

bool heddle__is_privileged(void) {
  return getauxval(AT_SECURE) != 0;
}

/* ---- the administrator's list */

/* Whether root alone may write to a file, and to the folders above it. path is changed. */
static bool is_of_root(char *path) {
  for (bool file = true;; file = false) {
    struct stat at;
    if (stat(path[0] != '\0' ? path : "/", &at) != 0 || at.st_uid != 0) return false;
    bool sticky = !file && (at.st_mode & S_ISVTX) != 0; /* others cannot touch what is in it */
    if (file && !S_ISREG(at.st_mode)) return false;
    if (!sticky && ((at.st_mode & S_IWOTH) != 0 || ((at.st_mode & S_IWGRP) != 0 && at.st_gid != 0))) return false;
    char *slash = strrchr(path, '/');
    if (slash == NULL || path[0] == '\0') return true;
    *slash = '\0';
  }
}

heddle_status heddle__system_file_trust(const char *path, heddle_error *err) {
  char real[PATH_MAX];
  if (realpath(path, real) == NULL)
    return errno == ENOENT || errno == ENOTDIR
               ? HEDDLE_ENOTFOUND
               : heddle__fail(err, HEDDLE_EIO, "configuration file '%s' cannot be looked at (errno %d)", path, errno);
  if (is_of_root(real)) return HEDDLE_OK;
  return heddle__fail(err, HEDDLE_EIO,
                      "configuration file '%s': a privileged process (set-user-ID) reads it only where root alone may "
                      "write to it and to the folders above it: 'chown root' and 'chmod go-w' them",
                      path);
}

static heddle_status read_list(heddle_context *ctx, heddle_error *err) {
  const char *path = heddle__system_file();
  heddle__entries entries = {0};
  heddle_status s = heddle__system_file_trust(path, err);
  if (s == HEDDLE_OK) s = heddle__config_file_read(path, false, &entries, err);
  for (size_t i = 0; i < entries.count; i++) {
    if (s == HEDDLE_OK && strcmp(entries.data[i].key, KEY) == 0) {
      heddle__free(ctx->allowed);
      ctx->allowed = heddle__strdup(entries.data[i].value);
      if (ctx->allowed == NULL) s = heddle__no_memory(err, "the list of plugins");
    }
    heddle__free(entries.data[i].key);
    heddle__free(entries.data[i].value);
  }
  heddle__free(entries.data);
  return s == HEDDLE_ENOTFOUND ? HEDDLE_OK : s;
}

/* Whether a list of names of plugins and of absolute paths, with ':' or ',' between, has a word. */
static bool has(const char *list, const char *word) {
  for (const char *p = list; word[0] != '\0'; p++) {
    size_t n = strcspn(p, ":,");
    if (strlen(word) == n && memcmp(p, word, n) == 0) return true;
    p += n;
    if (*p == '\0') return false;
  }
  return false;
}

/* ---- the environment */

/* By rule and not by a list of harmful names: which variables a vendor's library obeys is not known. PATH is set. */
static void clean_environment(const heddle__log *log) {
  static const char *const harmless[] = {"LANG", "LANGUAGE", "TERM", "TZ", "USER", "LOGNAME", "SHELL"};
  size_t count = 0, kept = 0;
  for (; environ != NULL && environ[count] != NULL; count++) {
    char *at = environ[count];
    size_t n = strcspn(at, "=");
    bool keep = at[n] == '=' && n >= 3 && strncmp(at, "LC_", 3) == 0;
    for (size_t k = 0; k < sizeof harmless / sizeof harmless[0]; k++)
      keep = keep || (at[n] == '=' && strlen(harmless[k]) == n && memcmp(at, harmless[k], n) == 0);
    if (keep) environ[kept++] = at;
  }
  if (environ != NULL) environ[kept] = NULL;
  (void)setenv("PATH", "/usr/bin:/bin", 1);
  heddle__logf(log, HEDDLE_LOG_INFO, "privileged",
               "%zu variables of the environment are dropped before drivers are opened", count - kept);
}

/* ---- for the loader */

heddle_status heddle__privileged_start(heddle_context *ctx, heddle_error *err) {
  if (!heddle__is_privileged()) return HEDDLE_OK;
  heddle_status s = read_list(ctx, err);
  if (s == HEDDLE_OK && ctx->allowed != NULL && ctx->allowed[0] != '\0') clean_environment(&ctx->log);
  return s;
}

heddle_status heddle__privileged_check(heddle__plugin *p, heddle_error *err) {
  char name[sizeof p->name];
  if (!heddle__is_privileged()) return HEDDLE_OK;
  heddle__file_name(p, name);
  if (p->ctx->allowed != NULL && (has(p->ctx->allowed, name) || has(p->ctx->allowed, p->real))) return HEDDLE_OK;
  return heddle__plugin_refuse(
      p, err,
      "this process has other rights than its caller (set-user-ID or the like), and loads only "
      "plugins that the administrator lists: \"" KEY "\" in %s",
      heddle__system_file());
}
