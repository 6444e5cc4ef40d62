/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/exp2.h"

#include <math.h>
#include <stdint.h>

/* ln(2) in two parts, so that their products with a small integer are exact. */
#define LN2_HIGH 6.93147180369123816490e-01
#define LN2_LOW 1.90821492927058770002e-10

/* 2^k; exact. */
static double power_of_two(int k)
{
	union {
		uint64_t u;
		double d;
	} bits = {.u = (uint64_t)(k + 1023) << 52};

	return bits.d;
}

double exp2_reference(double x)
{
	double t, high, low, r, square, c, y;
	int k;

	if (isnan(x) || x > 1.0239999999999999e+03)
		return isnan(x) ? x : INFINITY;
	if (x < -1074.0)
		return 0;
	k = (int)(x > 0 ? x + 0.5 : x - 0.5);
	t = x - (double)k;
	high = t * LN2_HIGH;
	low = -t * LN2_LOW;
	r = high - low;
	square = r * r;
	/* Coefficients: FreeBSD, lib/msun/src/e_exp.c. */
	c = r -
	    square *
		    (1.66666666666666657415e-01 +
			    square *
				    (-2.77777777770155933842e-03 +
					    square *
						    (6.61375632143793436117e-05 +
							    square *
								    (-1.65339022054652515390e-06 +
									    square *
										    4.13813679705723846039e-08))));
	y = 1.0 - ((low - (r * c) / (2.0 - c)) - high);
	return k > -1000 && k < 1000 ? y * power_of_two(k) : ldexp(y, k);
}
