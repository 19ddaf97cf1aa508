// Java's own client over HTTP/2: java Client.java URL,URL... (BODY-FILE HEADER-LENGTH TIMES ANSWER-FILE)...
// Sends each body so many times to each URL, 32 at once. Every answer must be 200, over HTTP/2, and as the first one, which is written to the file.
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.cert.X509Certificate;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.concurrent.CompletableFuture;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.TrustManager;
import javax.net.ssl.X509ExtendedTrustManager;

public class Client {
    static final int TOGETHER = 32;

    // The server's certificate is made by the test.
    static class Anybody extends X509ExtendedTrustManager {
        public void checkClientTrusted(X509Certificate[] chain, String type) {}
        public void checkServerTrusted(X509Certificate[] chain, String type) {}
        public void checkClientTrusted(X509Certificate[] chain, String type, Socket socket) {}
        public void checkServerTrusted(X509Certificate[] chain, String type, Socket socket) {}
        public void checkClientTrusted(X509Certificate[] chain, String type, SSLEngine engine) {}
        public void checkServerTrusted(X509Certificate[] chain, String type, SSLEngine engine) {}
        public X509Certificate[] getAcceptedIssuers() { return new X509Certificate[0]; }
    }

    static byte[] check(HttpResponse<byte[]> answer, byte[] expected) {
        if (answer.statusCode() != 200 || answer.version() != HttpClient.Version.HTTP_2)
            throw new RuntimeException(answer.version() + " " + answer.statusCode() + " " + new String(answer.body()));
        if (expected != null && !Arrays.equals(expected, answer.body()))
            throw new RuntimeException("an answer differs from the first");
        return answer.body();
    }

    static byte[] send(HttpClient client, HttpRequest request, int times, byte[] expected) throws Exception {
        byte[] first = check(client.send(request, HttpResponse.BodyHandlers.ofByteArray()), expected);
        for (int sent = 1; sent < times; ) {
            var together = new ArrayList<CompletableFuture<HttpResponse<byte[]>>>();
            for (; sent < times && together.size() < TOGETHER; sent++)
                together.add(client.sendAsync(request, HttpResponse.BodyHandlers.ofByteArray()));
            for (var answer : together)
                check(answer.get(), first);
        }
        return first;
    }

    public static void main(String[] arguments) throws Exception {
        SSLContext tls = SSLContext.getInstance("TLS");
        tls.init(null, new TrustManager[] {new Anybody()}, null);
        HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_2).sslContext(tls).build();
        for (int i = 1; i < arguments.length; i += 4) {
            byte[] body = Files.readAllBytes(Path.of(arguments[i])), first = null;
            for (String url : arguments[0].split(",")) {
                HttpRequest request = HttpRequest.newBuilder(URI.create(url))
                    .header("Inference-Header-Content-Length", arguments[i + 1])
                    .header("Content-Type", "application/octet-stream")
                    .POST(HttpRequest.BodyPublishers.ofByteArray(body))
                    .build();
                first = send(client, request, Integer.parseInt(arguments[i + 2]), first);
            }
            Files.write(Path.of(arguments[i + 3]), first);
        }
    }
}
