// SPDX-License-Identifier: Apache-2.0
/* The first process of every pod: holds its namespaces and reaps what it inherits. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void reap(int number)
{
	(void)number;
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

static void end(int number)
{
	(void)number;
	_exit(0);
}

int main(void)
{
	sigaction(SIGCHLD, &(struct sigaction){.sa_handler = reap}, NULL);
	sigaction(SIGTERM, &(struct sigaction){.sa_handler = end}, NULL);
	sigaction(SIGINT, &(struct sigaction){.sa_handler = end}, NULL);
	for (;;)
		pause();
}
