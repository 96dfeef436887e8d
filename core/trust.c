/* core/trust.c: who else may write to a plugin's file, to a manifest, or to a folder above them: what is opened there runs
 * in this process, so that Heddle refuses what others than root and this user could have put there. */
#define _GNU_SOURCE /* realpath, S_ISVTX */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"
#include "core/registry.h"
#include "plugins/common/cachefile.h"

/* Whether others may write. Who may change the folder of libheddle itself is trusted with plugins as well. */
static bool is_open(const struct stat *at, const struct stat *own) {
  if (S_ISDIR(at->st_mode) && (at->st_mode & S_ISVTX) != 0) return false; /* others cannot touch what is in it */
  bool group = cachefile_group_may_write(at) && !(at->st_gid == own->st_gid && (own->st_mode & S_IWGRP) != 0);
  return group || (at->st_mode & ~own->st_mode & S_IWOTH) != 0;
}

heddle_status heddle__trust(const heddle_context *ctx, const char *real, heddle_error *err) {
  char path[PATH_MAX];
  const char *value, *folder = ctx->folder;
  struct stat own, at;
  const bool privileged = heddle__is_privileged();
  if (!privileged && heddle__config_get(ctx->config, "plugin_trust", &value, NULL) && strcmp(value, "any") == 0)
    return HEDDLE_OK;
  const uid_t caller = privileged ? getuid() : 0; /* who must not bring code to a privileged process */
  memset(&own, 0, sizeof own);
  size_t n = strlen(real);
  if (n >= sizeof path) return heddle__fail(err, HEDDLE_EABI, "its path is too long");
  memcpy(path, real, n + 1);
  (void)stat(folder, &own);
  for (;;) {
    /* Who can change a folder that holds libheddle can change libheddle. */
    bool above = strncmp(folder, path, n) == 0 && (n == 1 || folder[n] == '\0' || folder[n] == '/');
    if (above || n == 1) return HEDDLE_OK;
    if (stat(path, &at) != 0) return heddle__fail(err, HEDDLE_EABI, "%s cannot be looked at (errno %d)", path, errno);
    const char *what = is_open(&at, &own) ? "can be written to by others: 'chmod go-w' it" : NULL;
    bool mine = at.st_uid == geteuid() && (at.st_uid != caller || !privileged);
    if (at.st_uid != 0 && !mine && at.st_uid != own.st_uid) what = "belongs to another user: 'chown' it";
    if (what != NULL)
      return heddle__fail(err, HEDDLE_EABI, "%s (mode %04o, owner %u) %s%s", path, (unsigned)at.st_mode & 07777,
                          (unsigned)at.st_uid, what, privileged ? "" : ", or trust it with plugin_trust=any");
    while (n > 1 && path[n - 1] != '/') n--;
    if (n > 1) n--;
    path[n] = '\0';
  }
}

heddle_status heddle__plugin_trust(heddle__plugin *p, heddle_error *err) {
  struct stat at;
  heddle_error why;
  free(p->real); /* of a try that lacked memory */
  p->real = realpath(p->path, NULL);
  if (p->real == NULL || stat(p->real, &at) != 0)
    return heddle__plugin_refuse(p, err, "it cannot be looked at (errno %d)", errno);
  p->size = at.st_size;
  p->mtime_ns = (int64_t)at.st_mtim.tv_sec * 1000000000 + at.st_mtim.tv_nsec;
  return heddle__trust(p->ctx, p->real, &why) == HEDDLE_OK ? HEDDLE_OK : heddle__plugin_refuse(p, err, "%s", why.text);
}
