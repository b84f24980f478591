/* Clocks in seconds. */
#ifndef CT_BASE_CLOCK_H
#define CT_BASE_CLOCK_H

double ct_clock_seconds(void); /* monotonic, from an arbitrary zero */

#endif
