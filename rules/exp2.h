/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* 2^x as the reference estimator computes it: the C library's exp2 differs in the last bit for
 * about one argument in ten. FreeBSD's e_exp rational approximation after reduction to |r| ≤
 * ln(2)/2. Above 1023.9… it is infinite, below −1074 zero. */
double exp2_reference(double x);
