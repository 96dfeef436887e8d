/* tools/compare_judge.h: whether two results of a node are the same but for rounding, by the error bound of its
 * operator (plugins/common/check/bound.h), and where they are not. */
#ifndef HEDDLE_TOOLS_COMPARE_JUDGE_H
#define HEDDLE_TOOLS_COMPARE_JUDGE_H

#include "compare_part.h"

enum { MOST_DIMS = 32 };

typedef struct judgement {
  bool differs;
  bool other_type; /* dtype or shape differ already; nothing else is known then */
  uint32_t ndim;
  uint64_t elements, beyond;               /* how many there are, and are beyond their bounds */
  uint64_t first, worst;                   /* the first of those, and the one that is off most; as they lie */
  double got, expected, bound;             /* of the first */
  double worst_got, worst_expected, error; /* of the worst */
  int64_t low[MOST_DIMS], high[MOST_DIMS]; /* the box in which they lie, both ends included */
  const char *rule;                        /* of the bound */
} judgement;

/* Judges output k of the part's only node: expected is side a's result, got side b's, both of the same inputs. Two
 * results that are right may lie on both sides of the exact one, so that twice the operator's bound is allowed. s: the
 * session whose cpu evaluates what a bound needs. */
heddle_status judge(const session *s, const whole *w, const part *p, uint32_t k, bool fast,
                    const heddle_tensor *expected, const heddle_tensor *got, judgement *out, heddle_error *err);

/* The bound of each element of output k of a node, whose values are numbers: reference are those of expected. False where
 * memory is out. judge_holds: whether a result lies within such a bound. */
bool judge_bounds(const session *s, const whole *w, uint32_t node, uint32_t k, bool fast, const heddle_tensor *expected,
                  const double *reference, double *bounds);
bool judge_holds(heddle_dtype dtype, double expected, double got, double bound);

/* "[0, 3, 5]" of element i. */
void index_text(const heddle_tensor *t, uint64_t i, char *out, size_t size);

#endif
