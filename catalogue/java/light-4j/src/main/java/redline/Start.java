package redline;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

import static java.util.stream.Collectors.joining;

/**
 * Writes the configuration of light-4j, or of a proxy on it, into the folder of `--config`, and starts the server.
 *
 * <p>The configuration is the module's own `values.yml`. In it, {NAME} is the value of the argument `--NAME`, and a few
 * are made of others here.
 */
public final class Start {
    private static final char[] PASSWORD = "password".toCharArray();

    /** The whole chain in its order, and which class each name stands for. */
    private static final Map<String, String> CHAIN = new LinkedHashMap<>();

    static {
        CHAIN.put("exception", "com.networknt.exception.ExceptionHandler");
        CHAIN.put("metrics", "com.networknt.metrics.MetricsHandler");
        CHAIN.put("traceability", "com.networknt.traceability.TraceabilityHandler");
        CHAIN.put("correlation", "com.networknt.correlation.CorrelationHandler");
        CHAIN.put("header", "com.networknt.header.HeaderHandler");
        CHAIN.put("specification", "com.networknt.openapi.OpenApiHandler");
        CHAIN.put("security", "com.networknt.openapi.JwtVerifyHandler");
        CHAIN.put("body", "com.networknt.body.BodyHandler");
        CHAIN.put("audit", "com.networknt.audit.AuditHandler");
        CHAIN.put("sanitizer", "com.networknt.sanitizer.SanitizerHandler");
        CHAIN.put("validator", "com.networknt.openapi.ValidatorHandler");
    }

    /** These read what the specification's handler found out. */
    private static final Set<String> NEED_SPECIFICATION = Set.of("metrics", "security", "validator");

    private Start() {}

    public static void main(String[] args) throws Exception {
        Map<String, String> values = new LinkedHashMap<>();
        for (int i = 0; i + 1 < args.length; i += 2) {
            values.put(args[i].substring("--".length()), args[i + 1]);
        }
        Path config = Path.of(values.get("config"));
        String protocol = values.get("protocol");
        values.put("is-tls", String.valueOf(protocol.endsWith("+tls")));
        values.put("is-plain", String.valueOf(!protocol.endsWith("+tls")));
        values.put("is-h2", String.valueOf(protocol.startsWith("h2")));
        if (values.containsKey("middleware")) {
            List<String> chain = chain(values.get("middleware"));
            values.put("chain", String.join(", ", chain));
            values.put("handlers", chain.stream().map(name -> ", " + CHAIN.get(name) + "@" + name).collect(joining()));
        }
        if (values.containsKey("upstream-protocol")) {
            String upstream = values.get("upstream-protocol");
            values.put("upstream-is-tls", String.valueOf(upstream.endsWith("+tls")));
            values.put("upstream-is-h2", String.valueOf(upstream.startsWith("h2")));
            values.put("upstream-scheme", upstream.endsWith("+tls") ? "https" : "http");
        }
        Files.writeString(config.resolve("values.yml"), filledIn(template(), values));
        Files.copy(Path.of(values.get("tls"), "server.keystore"), config.resolve("server.keystore"));
        if (!values.getOrDefault("upstream-ca", "").isEmpty()) {
            trust(Path.of(values.get("upstream-ca")), config.resolve("client.truststore"));
        }
        System.setProperty("logback.statusListenerClass", "ch.qos.logback.core.status.NopStatusListener");
        System.setProperty("light-4j-config-dir", config.toString());
        System.setProperty("redline.audit", config.resolve("audit.log").toString());
        com.networknt.server.Server.main(new String[0]);
    }

    /** `off`, `full`, `to-NAME` (the chain up to there) or NAME (alone, behind what it needs), as names in their order. */
    static List<String> chain(String middleware) {
        List<String> names = List.copyOf(CHAIN.keySet());
        if (middleware.equals("off")) {
            return List.of();
        }
        if (middleware.equals("full")) {
            return names;
        }
        if (middleware.startsWith("to-")) {
            return names.subList(0, names.indexOf(middleware.substring("to-".length())) + 1);
        }
        Set<String> wanted = new LinkedHashSet<>(Set.of(middleware));
        if (NEED_SPECIFICATION.contains(middleware)) {
            wanted.add("specification");
        }
        List<String> chain = new ArrayList<>(names);
        chain.retainAll(wanted);
        return chain;
    }

    private static String template() throws IOException {
        try (InputStream in = Start.class.getResourceAsStream("/values.yml")) {
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        }
    }

    private static String filledIn(String template, Map<String, String> values) {
        String text = template;
        for (Map.Entry<String, String> value : values.entrySet()) {
            text = text.replace("{" + value.getKey() + "}", value.getValue());
        }
        return text;
    }

    /** Makes a trust store that holds the authority of a PEM file. */
    private static void trust(Path authority, Path store) throws IOException, GeneralSecurityException {
        KeyStore keys = KeyStore.getInstance("PKCS12");
        keys.load(null, null);
        try (InputStream in = Files.newInputStream(authority)) {
            keys.setCertificateEntry("ca", CertificateFactory.getInstance("X.509").generateCertificate(in));
        }
        try (OutputStream out = Files.newOutputStream(store)) {
            keys.store(out, PASSWORD);
        }
    }
}
