/* tools/compare_region.h: regions of several nodes as side b runs them, each against its nodes one by one, and the smallest
 * part of one that still differs. */
#ifndef HEDDLE_TOOLS_COMPARE_REGION_H
#define HEDDLE_TOOLS_COMPARE_REGION_H

#include "compare_judge.h"

/* A session with the devices of another and PLUGIN.regions=0 for each of their plugins. */
typedef struct plain_session {
  session s;
  options o;
  char (*settings)[96];
} plain_session;
int plain_start(plain_session *p, const session *of);
void plain_finish(plain_session *p);

/* The regions of more than one node in side b's plan of the whole, not rewritten. */
typedef struct region_row {
  bool *chosen; /* per node of the whole */
  uint32_t first, last, count;
  char device[32];
} region_row;
typedef struct regions {
  region_row *rows;
  uint32_t n;
} regions;
/* The values of the whole's inputs must be known. Values that a region's nodes read are kept until its last node. */
heddle_status regions_read(const session *b, whole *w, regions *out, heddle_error *err);
void regions_finish(regions *r);

typedef struct region_difference {
  const region_row *row;
  bool *smallest;      /* per node; freed with region_difference_finish */
  uint32_t n_smallest; /* its nodes */
  uint32_t entry;      /* the first result of the smallest that differs */
  uint64_t first, beyond, elements;
  double got, expected, bound;
} region_difference;

/* Runs a region on b and its nodes one by one on a, from the same values; a and cpu are plain sessions. *differs tells
 * whether out was filled. A region that b does not run as one is passed over. */
heddle_status region_compare(const session *a, const session *b, const whole *w, const region_row *row, bool fast,
                             bool *differs, region_difference *out, heddle_error *err);
void region_difference_finish(region_difference *d);

void region_report(const whole *w, const region_difference *d);
json_t *region_object(const whole *w, const region_difference *d);
/* "sim.regions=0" of the difference's device. */
void region_setting(const region_difference *d, char *out, size_t size);

#endif
