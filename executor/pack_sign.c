/* executor/pack_sign.c: packs to a folder of its own beside the place, which only its owner can enter, and signs and
 * encrypts what it finds there: no other file has the plain bytes, and the name has either the old file or the whole new
 * one. */
#define _GNU_SOURCE /* mkdtemp */
#include "executor/pack_sign.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/error.h"

heddle_status heddle__pack_signed(const char *path, const heddle_pack_options *options, heddle_error *err) {
  heddle_pack_options plain = *options;
  plain.sign = NULL;
  if (path == NULL || path[0] == '\0') return heddle__fail(err, HEDDLE_EINVAL, "a packed file needs a path");
  if (options->sign->struct_size >= sizeof *options->sign && options->sign->sign == NULL &&
      options->sign->encrypt == NULL)
    return heddle__fail(err, HEDDLE_EINVAL, "%s: a sequence number goes with a key to sign with, which is not given",
                        path);
  char *folder = heddle__format("%s.XXXXXX", path), *file = NULL;
  if (folder == NULL) return heddle__no_memory(err, "a path");
  if (mkdtemp(folder) == NULL) {
    heddle_status s = heddle__fail(err, HEDDLE_EIO, "%s: no folder can be made beside it: %s", path, strerror(errno));
    heddle__free(folder);
    return s;
  }
  file = heddle__format("%s/packed", folder);
  heddle_status s = file != NULL ? heddle_pack(file, &plain, err) : heddle__no_memory(err, "a path");
  if (s == HEDDLE_OK) s = heddle_sign(file, path, options->sign, err);
  if (file != NULL) (void)unlink(file);
  (void)rmdir(folder);
  heddle__free(file);
  heddle__free(folder);
  return s;
}
