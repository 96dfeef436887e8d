/* graph/prepared.h: what a package carries besides its graph and parameters: files of caches, and for which devices they
 * were made. docs/packages.md has the bytes. */
#ifndef HEDDLE_GRAPH_PREPARED_H
#define HEDDLE_GRAPH_PREPARED_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/cache_folder.h"
#include "heddle/status.h"

/* A device that something was prepared for, as it described itself. */
typedef struct heddle__prepared_device {
  const char *name, *about, *driver, *build; /* build: of its plugin */
} heddle__prepared_device;

/* A list of devices for which the model was loaded and run once. */
typedef struct heddle__prepared_target {
  const char *list;
  heddle__prepared_device *devices;
  uint32_t n_devices;
} heddle__prepared_target;

typedef enum heddle__prepared_state { HEDDLE__UNCHECKED, HEDDLE__GOOD, HEDDLE__DAMAGED } heddle__prepared_state;

typedef struct heddle__prepared_file {
  const char *name;
  const unsigned char *data;
  uint64_t bytes;
  heddle__digest digest;
  uint32_t target;
  heddle__prepared_state state;
} heddle__prepared_file;

typedef struct heddle__prepared {
  const char *why;     /* it cannot be used, and this is the reason; or NULL */
  const char *version; /* of Heddle */
  heddle__prepared_target *targets;
  heddle__prepared_file *files; /* each begins a page */
  uint32_t n_targets, n_files;
  json_t *root; /* the texts are its */
} heddle__prepared;

/* Of parameters that lie in a package which has a part for what was prepared. */
typedef struct heddle__carried {
  const unsigned char *data; /* the package */
  uint64_t bytes;
  heddle__digest content; /* of its graph and parameters, as its head gives it */
  heddle__prepared *prepared;
  uint64_t device, inode; /* of the file */
  bool in_memory;         /* it is no file */
  bool is_copy;           /* what is used is a sealed copy of the file */
  bool is_verified;       /* likewise, signed by a key that is trusted */
  bool is_made;           /* it is being made: what is packed now is what it will carry */
  const char *plans; /* likewise: the folder of its plans (executor/recall.h), borrowed; NULL: it is not being made */
} heddle__carried;

/* The index of a package of so many bytes: JSON text at a place whose digest is given. Not usable: why is set. NULL: no
 * memory. */
heddle__prepared *heddle__prepared_read(const unsigned char *package, uint64_t bytes, uint64_t at, uint64_t length,
                                        const heddle__digest *digest);
void heddle__prepared_free(heddle__prepared *p); /* takes NULL */

#endif
