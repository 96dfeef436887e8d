/* TfIdfVectorizer. */
#include "portable.cl"

/* The table g: TF_HEAD integers, where the rows of each result begin, ROW words for each row, and the numbers of all rows. */
#define LENGTH G(0)
#define SIZE G(1)
#define GAPS G(2)
#define ROWS_AT G(3)
#define NUMBERS_AT G(4)
#define TF_HEAD 5
#define TF_ROW 3

//! tfidf: i32
#ifdef K_tfidf
/* An item has a result: a line and an index, counting the rows of numbers of this index that it finds. Of a row the table has how
 * many numbers it counts (0: none), where they begin, and its weight. mode: 0 the counts, 1 the weights of what is there, 2 their
 * products. Operand 0 is read as words, two a number where step is 2. */
KERNEL_2_1(tfidf, k_general, T0, x0, i32, g, f32, y) {
  K_EACH(u, p.count);
  const IDX line = u / SIZE, column = u % SIZE, first = ROWS_AT + TF_ROW * G(TF_HEAD + column),
            last = ROWS_AT + TF_ROW * G(TF_HEAD + column + 1);
  float sum = 0.0f;
  for (IDX r = first; r < last; r += TF_ROW) {
    const IDX n = G(r), numbers = NUMBERS_AT + 2 * G(r + 1), apart = n > 1 ? GAPS + 1 : 1;
    for (IDX step = 1; n > 0 && step <= apart && (n == 1 || step <= LENGTH); step++) {
      for (IDX at = 0; at + (n - 1) * step < LENGTH; at++) {
        bool found = true;
        for (IDX k = 0; found && k < n; k++) {
          const IDX place = (line * LENGTH + at + k * step) * AT(p.step);
          const int low = x0[place], high = p.step == 2 ? x0[place + 1] : low >> 31;
          found = low == g[numbers + 2 * k] && high == g[numbers + 2 * k + 1];
        }
        if (found) sum += 1.0f;
      }
    }
  }
  for (IDX r = first; p.mode != 0 && r < last; r += TF_ROW) {
    const float weight = K_FLOAT(CAST(uint, g[r + 2]));
    if (sum != 0.0f) sum = p.mode == 1 ? weight : sum * weight;
  }
  y[u] = sum;
}
#endif
