/* frontends/onnx/maps.h: files mapped into memory: the model's own, and those beside it that hold weights. */
#ifndef HEDDLE_ONNX_MAPS_H
#define HEDDLE_ONNX_MAPS_H

#include <stdint.h>

#include "core/sealed.h"
#include "graph/graph.h"

/* The files of one model. */
typedef struct heddle__onnx_maps heddle__onnx_maps;

/* NULL where memory is out. max_bytes is for all files together; access is copied, not what it points to. */
heddle__onnx_maps *heddle__onnx_maps_new(uint64_t max_bytes, const heddle__file_access *access);
void heddle__onnx_maps_free(void *maps); /* takes NULL */

/* Maps a regular file for reading, once; *data is NULL where it is empty. HEDDLE_EIO, HEDDLE_ELIMIT. */
heddle_status heddle__onnx_map(heddle__onnx_maps *maps, const char *path, const unsigned char **data, uint64_t *bytes,
                               heddle_error *err);

/* The same for weights at a path that a model gives, relative to the model's folder. HEDDLE_EFORMAT where it is absolute
 * or leads out of the folder, by ".." or by a symbolic link. */
heddle_status heddle__onnx_map_beside(heddle__onnx_maps *maps, const char *model, const char *location,
                                      const unsigned char **data, uint64_t *bytes, heddle_error *err);

/* The same for bytes that may lie in none of the maps: then nothing is done. */
void heddle__onnx_maps_forget(void *maps, const void *data, uint64_t bytes);

/* See heddle_params.where. */
bool heddle__onnx_maps_where(void *maps, const void *data, uint64_t bytes, heddle__file_place *out);

/* Bytes of a map that have been copied: their pages need not stay in memory. They may be read again. */
void heddle__onnx_forget(const unsigned char *data, uint64_t bytes);

#endif
