/* tools/compare_report.h: what heddle compare found, as text, as JSON, and as files that show it again. */
#ifndef HEDDLE_TOOLS_COMPARE_REPORT_H
#define HEDDLE_TOOLS_COMPARE_REPORT_H

#include "compare_judge.h"

/* A difference at an output of a node. alone: what the node gives as a graph of its own on side b, of the same inputs. */
typedef struct difference {
  uint32_t node, output;
  judgement judged;
  const heddle_tensor *expected, *got;
  char device_a[32], device_b[32]; /* where the node ran; the list of the side where that is not known */
  bool same_alone;                 /* side b differs there too */
  bool region_differs;             /* the region in which b runs the node does */
  uint32_t region_nodes;           /* of that region; 0: it is in none, or that was not tried */
} difference;

/* Prints it as text. */
void report_difference(const whole *w, const part *p, const difference *d);
json_t *difference_object(const whole *w, const part *p, const difference *d);

/* A side, and the device on which the node ran alone there; NULL: not known. */
typedef struct replay_side {
  const session *session;
  const char *device;
} replay_side;

/* Writes the node alone, its inputs, what side a made of them and the command lines that show the difference again into
 * a folder, which is made. command gets the line of side b, freed by the caller. Gives an exit status. */
int report_replay(const replay_side *a, const replay_side *b, const whole *w, const part *p,
                  heddle_tensor *const *expected, const char *folder, char **command);

#endif
