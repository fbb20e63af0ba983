/* The lean ring of benchmarks/simulator.py as a C program for SimGrid's SMPI:
 * one float a chunk, n - 1 steps that add and n - 1 that replace. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int rank, n;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    float *x = malloc(n * sizeof *x), came, sum = 0;
    for (int i = 0; i < n; i++)
        x[i] = (float)(rank % 7);
    for (int r = 0; r < n; r++)
        sum += (float)(r % 7);

    int left = (rank - 1 + n) % n, right = (rank + 1) % n;
    double started = MPI_Wtime();
    for (int step = 0; step < 2 * (n - 1); step++) {
        int adds = step < n - 1, s = step % (n - 1);
        int out = ((adds ? rank : rank + 1) - s + n) % n, into = (out - 1 + n) % n;
        MPI_Request request;
        MPI_Isend(&x[out], 1, MPI_FLOAT, right, 0, MPI_COMM_WORLD, &request);
        MPI_Recv(&came, 1, MPI_FLOAT, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        x[into] = adds ? x[into] + came : came;
    }
    double taken = MPI_Wtime() - started;

    for (int i = 0; i < n; i++)
        if (x[i] != sum) {
            fprintf(stderr, "rank %d: the data is wrong\n", rank);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    if (rank == 0)
        printf("virtual seconds %.9g\n", taken);
    MPI_Finalize();
    return 0;
}
