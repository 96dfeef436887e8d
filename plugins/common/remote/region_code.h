/* Regions and offers as bytes. What is read back is checked: counts, shapes, types, indices, the order of the nodes, and that
 * the bytes of a constant are as many as its shape says. */
#ifndef HEDDLE_PLUGINS_COMMON_REMOTE_REGION_CODE_H
#define HEDDLE_PLUGINS_COMMON_REMOTE_REGION_CODE_H

#include "plugins/common/remote/wire.h"

/* Constants of at least this many bytes are sent once in a session (WIRE_BLOB), and named by a hash of their bytes. */
enum { WIRE_BLOB_FROM = 4096 };

/* Since these minors a region says which dimensions are open, and an offer which operands its results extend. */
enum { WIRE_OPEN_MINOR = 4, WIRE_EXTENDS_MINOR = 4 };

typedef struct wire_blob_id {
  uint64_t hash[2];
  uint64_t bytes;
} wire_blob_id;

wire_blob_id wire_blob_of(const void *data, uint64_t bytes);

/* Called for each constant that is named by its hash; false ends the writing, which has failed then. */
typedef bool (*wire_blob_fn)(void *user, const wire_blob_id *id, const void *data);
/* Layouts of values as the other end knows them; NULL: as they are. */
typedef heddle_layout (*wire_layout_fn)(void *user, heddle_layout layout);

void wire_put_region(byte_buffer *b, const heddle_pregion *region, wire_blob_fn blob, wire_layout_fn layout,
                     void *user);

/* After a region with HEDDLE_REGION_OPEN, for a server of WIRE_OPEN_MINOR: which dimensions of its values are open. */
void wire_put_open(byte_buffer *b, const heddle_pregion *region);

/* The bytes of a constant that was sent before; NULL: unknown. */
typedef const void *(*wire_find_fn)(void *user, const wire_blob_id *id);

/* A region in memory of its own; its constants point into the reader's bytes or to what find gave. NULL: malformed
 * (HEDDLE_EFORMAT), or memory is out. Freed with free. */
heddle_pregion *wire_take_region(byte_reader *r, wire_find_fn find, void *user, heddle_error *err);

/* The values of a region alone, for the same nodes with smaller shapes. take gives them to a region that was read; their
 * constants point as above. false: they are malformed, or not the region's, or a dimension is larger, or smaller and not
 * open. */
void wire_put_values(byte_buffer *b, const heddle_pregion *region, wire_blob_fn blob, wire_layout_fn layout,
                     void *user);
bool wire_take_values(byte_reader *r, heddle_pregion *region, wire_find_fn find, void *user);

/* One value, for layouts. data stays NULL. The shape is kept in shape[WIRE_MOST_DIMS]. */
void wire_put_value(byte_buffer *b, const heddle_pvalue *value, wire_layout_fn layout, void *user);
void wire_take_value(byte_reader *r, heddle_pvalue *value, int64_t *shape);

/* Offers for a region with these numbers of operands; extends: with what they extend, which the other end knows. The
 * arrays of an offer that is read are in one block, which is freed with free(*block). */
void wire_put_offer(byte_buffer *b, const heddle_poffer *offer, uint32_t n_inputs, uint32_t n_outputs, bool extends);
bool wire_take_offer(byte_reader *r, uint32_t n_inputs, uint32_t n_outputs, bool extends, wire_layout_fn layout,
                     void *user, heddle_poffer *offer, void **block);

#endif
