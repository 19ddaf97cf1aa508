"""scikit-learn's estimators through skl2onnx: what is made of dense arithmetic is served, the rest is refused by name."""
import re
import warnings


from export import write_cases

SIZES = ((1, 1), (3, 1), (5, 1))


def estimators():
    from sklearn import cluster, decomposition, ensemble, impute, linear_model, multiclass, neighbors, neural_network, pipeline, preprocessing, svm, tree
    scaled = lambda e: pipeline.make_pipeline(preprocessing.StandardScaler(), e)
    yield "sk-mlp-classifier", scaled(neural_network.MLPClassifier(hidden_layer_sizes=(16,), max_iter=30))
    yield "sk-mlp-regressor", scaled(neural_network.MLPRegressor(hidden_layer_sizes=(16, 8), max_iter=30))
    yield "sk-logistic-regression", linear_model.LogisticRegression(max_iter=50)
    yield "sk-linear-regression", linear_model.LinearRegression()
    yield "sk-pca", decomposition.PCA(3)
    yield "sk-k-means", cluster.KMeans(3, n_init=1)
    yield "sk-svc", svm.SVC(probability=True)
    yield "sk-svc-polynomial", svm.SVC(kernel="poly")
    yield "sk-nu-svc-linear", svm.NuSVC(kernel="linear", nu=.3, probability=True)
    yield "sk-svr-sigmoid", svm.SVR(kernel="sigmoid")
    yield "sk-one-class-svm", svm.OneClassSVM()
    yield "sk-one-versus-one", multiclass.OneVsOneClassifier(linear_model.LogisticRegression(max_iter=50))
    yield "sk-random-forest", ensemble.RandomForestClassifier(5, max_depth=3)
    yield "sk-gradient-boosting", ensemble.GradientBoostingClassifier(n_estimators=3)
    yield "sk-decision-tree", tree.DecisionTreeRegressor(max_depth=3)
    filled = pipeline.make_pipeline(impute.SimpleImputer(missing_values=1.4), preprocessing.StandardScaler(), ensemble.RandomForestClassifier(5, max_depth=3))
    yield "sk-imputer-random-forest", filled
    yield "sk-binarizer-logistic-regression", pipeline.make_pipeline(preprocessing.Binarizer(threshold=2.0), linear_model.LogisticRegression(max_iter=50))
    yield "sk-k-neighbours", neighbors.KNeighborsClassifier(3)


def make(folder, pattern, attempt):
    from sklearn.datasets import load_iris
    from skl2onnx import to_onnx
    warnings.filterwarnings("ignore")
    x, y = load_iris(return_X_y=True)
    x = x.astype("f4")
    rows = lambda b, s, r: {"X": x[r.integers(0, len(x), b)]}
    for name, estimator in estimators():
        for zipmap in (True, False):
            full = f"{name}.skl2onnx" + ("" if zipmap else "-no-zipmap")
            if not re.search(pattern, full) or (zipmap and not hasattr(estimator, "predict_proba")):
                continue

            def convert(path):
                estimator.fit(x, y)
                options = {"zipmap": zipmap} if hasattr(estimator, "predict_proba") else None
                path.write_bytes(to_onnx(estimator, x[:1], options=options, target_opset=17).SerializeToString())
            attempt(folder, full, convert, lambda place: write_cases(place, SIZES, rows))

