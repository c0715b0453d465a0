"""Settings of what a slate is made of: clusters, the slate model, assembly and constraints."""

SLATES = {
    "ClusteringConfig": {
        "method": "The clusterer.",
        "count": "Number of clusters M, where choose is fixed.",
        "max_iter": "Most iterations of one clustering.",
        "n_init": "Starts of which the best is kept.",
        "seed": "Seed of the clusterer; none: the policy's own.",
        "small": "What becomes of clusters with fewer than K arms: merged into the nearest, skipped, filled from the"
        " nearest, or an error.",
        "on": "Cluster profiles, or contexts masked by the query (another, easier problem).",
        "warm": "Start each re-clustering of the online variant from the last centroids.",
        "noise": "Noise points of HDBSCAN join the nearest cluster, or form their own.",
        "choose": "fixed: count clusters; otherwise the criterion that finds their number in the data.",
        "most": "Most clusters that choose looks at.",
    },
    "SlateModelConfig": {
        "width": "Units n of each hidden layer of the slate net F.",
        "depth": "Hidden layers of F.",
        "transform": "What makes the raw weights of F positive, so that F is monotone.",
        "scale": "Weights as printed, or calibrated so that F(1) is near 1 at the start.",
        "init": "Initial weights: as the paper's (N(1/n, 1), no biases) or as the authors' code (monotone).",
        "biases": "Trained, left out (none, the printed number of parameters), or drawn at random at the start.",
        "relu_out": "Rectify the output of F.",
        "nonneg_bias": "Keep biases at least 0.",
        "clamp_all": "Clamp every raw parameter at 0 after each step, as the authors' MovieLens code does.",
        "weight": "ω in V(S) = Σv + ωK·F(S); 0: the slate net is not used.",
        "score": "Sum, or mean, of the arms' optimistic scores in V(S).",
        "input": "F reads the arms' means, or their optimistic scores.",
        "sort_input": "Sort what F reads, so that the order of a slate does not matter.",
        "relu_input": "Rectify what F reads.",
        "train_input": "Fit F on predictions of the present arm net, on those made when the slate was learned, or on"
        " realised arm rewards.",
        "training": "How F is fitted.",
    },
    "SlateNetConfig": {
        "width": "Units of each hidden layer of the plain slate net.",
        "depth": "Hidden layers of the plain slate net.",
        "train_input": "What stands for the arms' qualities when it is fitted: realised rewards, or predictions.",
        "adam": "Its optimiser.",
        "retrain": "When it is trained.",
    },
    "AssemblyConfig": {
        "exact_slates": "Search all slates of the arms that may still enter, if they are at most so many.",
        "sweeps": "Rounds of single swaps after the greedy slate.",
        "soft": "Count clusters by responsibilities instead of labels.",
    },
    "Constraints": {
        "required": "Ids of arms that every slate must hold.",
        "excluded": "Ids of arms that no slate may hold.",
        "at_most": "Most arms of one category in a slate; none: any number.",
        "diversity_weight": "δ, the weight of the slate's diversity D(S).",
        "categories": "Category of each arm of the round, from Python only; none: the policy's clusters.",
    },
}
