// ArgMax, ArgMin and TopK over columns, as in along.cl: ARG with BY_GROUP a group has a column, else an item; RANK: an item
// has an element, whose place is the number of those before it; HEAP: an item has a column; PICK: a group has a column, and
// finds one result after the other. NaN comes first
// or last, as is asked for; of equals the one with the lower index comes first, or the last one where that is asked for: a strict order,
// so that results do not depend on how the work is split. Indices go out in 64 bits, as pairs of words.
#version 450
#extension GL_GOOGLE_include_directive : enable
#include "common.glsl"
#include "params.glsl"
#include "types.glsl"

PUSHED {
  int columns, n, inner, k, largest, last, nan_first;
}
p;

OPERAND(1, S, x);
#ifdef ARG
RESULT(2, uvec2, indices);
#else
RESULT(2, S, values);
RESULT(3, uvec2, indices);
#endif

#if TYPE == TYPE_F32
#define IS_NAN(v) k_is_nan(v)
#elif TYPE == TYPE_F64
#define IS_NAN(v) ((v) != (v))
#else
#define IS_NAN(v) false
#endif

// Does element i of the column that begins at base come before element j?
bool before(const int base, const int i, const int j) {
  const C a = LOAD(x[base + i * p.inner]), b = LOAD(x[base + j * p.inner]);
  const bool a_nan = IS_NAN(a), b_nan = IS_NAN(b);
  if (a == b || (a_nan && b_nan)) return p.last != 0 ? i > j : i < j;
  if (a_nan || b_nan) return a_nan == (p.nan_first != 0);
  return (a > b) == (p.largest != 0);
}

// Where the first element of a column of n lies.
int column_start(const int column, const int n) {
  return column / p.inner * n * p.inner + column % p.inner;
}

#if defined(ARG) && defined(BY_GROUP)

// At least as many elements as the group has items.
shared int room[GROUP];

void main() {
  if (k_group() >= uint(p.columns)) return;
  const int item = int(gl_LocalInvocationID.x), base = column_start(int(k_group()), p.n);
  int best = item;
  for (int i = item; i < p.n; i += 4 * GROUP) {
    [[unroll]] for (int b = 0; b < 4; b++) {
      if (i + b * GROUP < p.n && before(base, i + b * GROUP, best)) best = i + b * GROUP;
    }
  }
  room[item] = best;
  barrier();
  for (int span = GROUP / 2; span > 0; span /= 2) {
    if (item < span && before(base, room[item + span], room[item])) room[item] = room[item + span];
    barrier();
  }
  if (item == 0) indices[k_group()] = uvec2(uint(room[0]), 0u);
}

#elif defined(ARG)

void main() {
  if (k_item() >= uint(p.columns)) return;
  const int base = column_start(int(k_item()), p.n);
  int best = 0;
  for (int i = 1; i < p.n; i++) {
    if (before(base, i, best)) best = i;
  }
  indices[k_item()] = uvec2(uint(best), 0u);
}

#elif defined(RANK)

void main() {
  const int id = int(k_item()), i = id % p.n, column = id / p.n;
  if (column >= p.columns) return;
  const int base = column_start(column, p.n);
  int rank = 0;
  for (int j = 0; j < p.n; j++) {
    if (j != i && before(base, j, i)) rank++;
  }
  if (rank >= p.k) return;
  const int at = column_start(column, p.k) + rank * p.inner;
  values[at] = x[base + i * p.inner];
  indices[at] = uvec2(uint(i), 0u);
}

#elif defined(PICK)

shared int room[GROUP];

// Every item looks for the first of its share that comes behind the last result; -1: there is none.
void main() {
  if (k_group() >= uint(p.columns)) return;
  const int item = int(gl_LocalInvocationID.x), base = column_start(int(k_group()), p.n);
  const int to = column_start(int(k_group()), p.k);
  int last = -1;
  for (int found = 0; found < p.k; found++) {
    int best = -1;
    for (int i = item; i < p.n; i += 4 * GROUP) {
      [[unroll]] for (int b = 0; b < 4; b++) {
        const int at = min(i + b * GROUP, p.n - 1);
        if ((last < 0 || (at != last && before(base, last, at))) && (best < 0 || before(base, at, best))) best = at;
      }
    }
    room[item] = best;
    barrier();
    [[unroll]] for (int span = GROUP / 2; span > 0; span /= 2) {
      if (item < span) {
        const int here = room[item], there = room[item + span];
        if (here < 0 || (there >= 0 && before(base, there, here))) room[item] = there;
      }
      barrier();
    }
    last = room[0];
    barrier();
    if (item == 0) {
      values[to + found * p.inner] = x[base + last * p.inner];
      indices[to + found * p.inner] = uvec2(uint(last), 0u);
    }
  }
}

#else

// The index that the heap of the column has at a place.
#define IN_HEAP(i) indices[to + (i) * p.inner].x

// Lets element start of a heap of count go down to its place; the worst is on top.
void sift(const int base, const int to, const int start, const int count) {
  int at = start;
  for (;;) {
    int worst = at;
    [[unroll]] for (int side = 1; side <= 2; side++) {
      const int child = 2 * at + side;
      if (child < count && before(base, int(IN_HEAP(worst)), int(IN_HEAP(child)))) worst = child;
    }
    if (worst == at) return;
    const uint other = IN_HEAP(at);
    IN_HEAP(at) = IN_HEAP(worst);
    IN_HEAP(worst) = other;
    at = worst;
  }
}

// A heap of the k best so far, made in the result of indices itself and sorted in the end.
void main() {
  if (k_item() >= uint(p.columns)) return;
  const int column = int(k_item()), base = column_start(column, p.n), to = column_start(column, p.k), k = p.k;
  for (int i = 0; i < k; i++) indices[to + i * p.inner] = uvec2(uint(i), 0u);
  for (int i = k / 2 - 1; i >= 0; i--) sift(base, to, i, k);
  for (int i = k; i < p.n; i++) {
    if (!before(base, i, int(IN_HEAP(0)))) continue;
    IN_HEAP(0) = uint(i);
    sift(base, to, 0, k);
  }
  for (int i = k - 1; i > 0; i--) {
    const uint other = IN_HEAP(0);
    IN_HEAP(0) = IN_HEAP(i);
    IN_HEAP(i) = other;
    sift(base, to, 0, i);
  }
  for (int i = 0; i < k; i++) values[to + i * p.inner] = x[base + int(IN_HEAP(i)) * p.inner];
}

#endif
