/* modules/pack/objects.h: objects as TVM exports them (.o, archives .a and .tar of them, C source in a .tar), made one
 * library by the C compiler. */
#ifndef HEDDLE_MODULES_PACK_OBJECTS_H
#define HEDDLE_MODULES_PACK_OBJECTS_H

#include "modules/pack/buffer.h"
#include "modules/tvm/blob.h"

enum { HEDDLE__MOST_OBJECTS = 4096 };

typedef struct heddle__objects {
  char folder[4096]; /* of our own, where they lie for the compiler; "" while there are none */
  char **files;      /* in it */
  uint32_t n_files;
  void **images; /* of objects that hold modules and nothing else: they are not linked */
  heddle__span *blobs;
  heddle__blob_layout *layouts;
  uint32_t n_blobs;
} heddle__objects;

/* What a file is, by its first bytes. */
typedef enum heddle__file_kind { HEDDLE__FILE_OTHER, HEDDLE__FILE_LIBRARY, HEDDLE__FILE_OBJECTS } heddle__file_kind;
heddle__file_kind heddle__file_kind_of(const void *data, size_t bytes);

/* Adds the objects of a file. data is not needed afterwards. */
heddle_status heddle__objects_add(heddle__objects *o, const void *data, size_t bytes, heddle_error *err);

/* The library that the compiler (NULL: $CC, else cc) makes of them; *out is freed with heddle__free.
 * HEDDLE_EUNSUPPORTED: there is no compiler. HEDDLE_EFAILED with the first lines that it printed. */
heddle_status heddle__objects_link(heddle__objects *o, const char *compiler, void **out, size_t *bytes,
                                   heddle_error *err);
void heddle__objects_finish(heddle__objects *o); /* removes the files, too */

#endif
